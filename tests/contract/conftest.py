"""Options of the contract suites."""


def pytest_addoption(parser):
    parser.addoption("--programs", help="folder of the product's programs; those of tests are beside it")
