"""boards.toml: what boards there are (`schema`), which of them to run on (`selection`), the SoCs (`socs`).

Depends on nothing of ours but `pytest_rknpu.errors`. Nothing is re-exported here, so that a module which only
needs the SoC table does not pay for pydantic.
"""
