"""The pages that show samples: report.html of a comparison, report.html of one model.

    texts.py       what model text becomes before it may enter a page
    samples.py     which samples are shown, and their records
    facts.py       how the results were made, what is missing and why
    verdicts.py    the gate's verdicts for the page
    comparison.py  the page of a comparison
    model.py       the page of one model
    page.py        templates to one self-contained file

A page opens from disk, asks the network for nothing, and shows text from models as text only.
"""
