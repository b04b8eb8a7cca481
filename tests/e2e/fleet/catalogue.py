"""The devices of the four nodes, and the labels that GPU Feature Discovery would set on them: written by a person from the machine files (sim/machines,
sim/models) and GPU Feature Discovery's documentation. Nothing here comes from Penstock's output."""

MACHINES = {"n1": "dgx-a100", "n2": "mixed", "n3": "t4-x1", "n4": "a100-40gb-x1"}


def driver(major: str, minor: str, revision: str, cuda: str) -> dict[str, str]:
    runtime = cuda.split(".")
    return {"cuda.driver.major": major, "cuda.driver.minor": minor, "cuda.driver.rev": revision,
            "cuda.driver-version.major": major, "cuda.driver-version.minor": minor, "cuda.driver-version.revision": revision,
            "cuda.driver-version.full": f"{major}.{minor}.{revision}",
            "cuda.runtime.major": runtime[0], "cuda.runtime.minor": runtime[1],
            "cuda.runtime-version.major": runtime[0], "cuda.runtime-version.minor": runtime[1], "cuda.runtime-version.full": cuda}


def gpus(product: str, count: int, memory: int, family: str, compute: str, machine: str, mig: bool, mode: str = "compute") -> dict[str, str]:
    major, minor = compute.split(".")
    return {"gpu.product": product, "gpu.count": str(count), "gpu.memory": str(memory), "gpu.family": family,
            "gpu.compute.major": major, "gpu.compute.minor": minor, "gpu.machine": machine, "gpu.mode": mode,
            "gpu.replicas": "1", "gpu.sharing-strategy": "none", "gpu.isolation": "hardware", "mig.capable": str(mig).lower(), "mps.capable": "false",
            "vgpu.present": "false"}


# Without the prefix nvidia.com/. On the mixed node, with one GPU of each of three models, the keys without a model describe the first GPU.
LABELS = {
    "n1": driver("550", "54", "15", "12.4") | gpus("NVIDIA-A100-SXM4-40GB", 8, 40960, "ampere", "8.0", "DGXA100-920-23687-2531-001", True),
    "n2": driver("550", "54", "15", "12.4") | gpus("NVIDIA-A100-PCIE-40GB", 1, 40960, "ampere", "8.0", "SYS-4029GP-TRT", True, "unknown"),
    "n3": driver("535", "183", "01", "12.2") | gpus("Tesla-T4", 1, 15360, "turing", "7.5", "g4dn.xlarge", False),
    "n4": driver("550", "54", "15", "12.4") | gpus("NVIDIA-A100-SXM4-40GB", 1, 40960, "ampere", "8.0", "Google-Compute-Engine", True),
}
# Labels for each model are Penstock's own: the model's name without its vendor.
MODELS = {"n1": {"A100-SXM4-40GB": (8, 40960)}, "n2": {"A100-PCIE-40GB": (1, 40960), "GeForce-RTX-3090": (1, 24576), "Tesla-T4": (1, 15360)},
          "n3": {"Tesla-T4": (1, 15360)}, "n4": {"A100-SXM4-40GB": (1, 40960)}}
