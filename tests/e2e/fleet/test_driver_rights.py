"""Least rights: each rule of the chart gpu-operator that only drivers need was used by a request of the suite's other scenarios. Runs last."""
import pytest
from test_operator_rights import assert_used, for_drivers, rights_of_the_chart


@pytest.mark.usefixtures("whole_suite")
def test_every_rule_for_drivers_was_used(fleet):
    assert_used({right for right in rights_of_the_chart(fleet) if for_drivers(right)}, fleet)
