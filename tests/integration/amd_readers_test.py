"""Programs that others wrote read the files of simulated AMD machines, bound over /sys in a mount namespace of their own, and see what Penstock says of them: Debian's rocm-smi
(5.2, which knows neither partitions nor MI300X), node_exporter's collector of DRM, lspci."""
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from amd import NODES, Amd
from node import Node, wait_until
from sockets import free_port

DUMP = Path(__file__).parents[3] / "shared/fixtures/rocm-kfd-mi300cpx-mi210.tar.gz"  # of real machines, not in the repository


@pytest.fixture
def node(make_node) -> Node:
    """A machine without GPUs of NVIDIA, not yet with an agent."""
    node = make_node(machine="empty", config="telemetry: {interval: 1s}\n")
    node.listen = f"unix:{node.home}/page.sock"
    return node
