"""From task data to response files: what run_inference.py is made of. Runs in vLLM's environment.

    data.py ─► samples.py ─► prompts.py ─► engine.py ─► store.py
    task rows   user turns    token ids     vLLM         finished samples, then whole files

served.py stands in engine.py's place where the model is behind an OpenAI-compatible server.
checkpoint.py knows the model on disk or on the hub, limits.py the room for answers, preflight.py what can go
wrong before the engine starts, manifest.py what run.json says afterwards. vLLM is imported in engine.py
alone.
"""
