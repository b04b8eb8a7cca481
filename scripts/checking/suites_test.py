"""How the tests that ctest lists are grouped."""
import suites


def test_the_cases_of_a_program_are_one_suite_whatever_starts_it():
    listing = {"tests": [
        {"name": "A.one", "command": ["/b/tests/a_test", "--gtest_filter=A.one", "--brief"]},
        {"name": "A.two", "command": ["/b/tests/a_test", "--gtest_filter=A.two"]},
        {"name": "B.one", "command": ["python3", "isolated.py", "/b/tests/b_test",
                                      "--gtest_filter=B.one"]},
        {"name": "words", "command": ["sh", "words.sh"]}, {"name": "not built"}]}
    assert [(one.name, [test.name for test in one.tests]) for one in suites.grouped(listing)] == [
        ("a_test", ["A.one", "A.two"]), ("b_test", ["B.one"]), ("words", ["words"]),
        ("not built", ["not built"])]
