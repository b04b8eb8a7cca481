def pytest_addoption(parser):
    parser.addoption("--programs", required=True, help="folder of this build's programs")
