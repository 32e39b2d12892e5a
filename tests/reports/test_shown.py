"""Records and runs as they show themselves, in a terminal, in a notebook and as a data frame."""

import holdfast
from reports.stores import put, record


def test_runs_print_their_tables_and_name_what_is_not_done(real_store, tmp_path):
    runs = holdfast.load(real_store)
    lines = str(runs).splitlines()
    assert lines[0] == "patterns · tiny · class · forward · perceptron"
    (head,) = (line.split() for line in lines if line.split()[:1] == ["algorithm"])
    assert head[:4] == ["algorithm", "final", "acc.", "↑"]
    rows = {line.split()[0]: line for line in lines if "±" in line and "mean" not in line}
    assert rows.keys() == {"finetune", "replay"}
    mean = sum(run.summary["final_accuracy"] for run in runs.where(algorithm="replay")) / 2
    assert f" {100 * mean:.1f} ±" in rows["replay"]
    assert "In percent; the mean of 2 seeds, ± its 95 % t-interval." in lines
    assert lines[-1] == f"4 runs in {real_store}"
    assert str(runs[:0]) == f"0 runs in {real_store}"

    put(tmp_path, record(run="cccccccccccc"))
    folder = put(tmp_path, record(run="aaaaaaaaaaaa"))
    (folder / "record.json").write_text("[1]")
    assert "aaaaaaaaaaaa is broken: record.json is not a record of a run" in str(holdfast.load(tmp_path))


def test_a_record_prints_its_measures_and_the_command_that_repeats_it(real_store):
    found = holdfast.load(real_store)[2]
    lines = str(found.record).splitlines()
    (row,) = (line for line in lines if line.split()[:1] == ["replay"])
    assert row.split()[1] == f"{100 * found.summary['final_accuracy']:.1f}"
    assert lines[-2:] == [f"run {found.id}, seed {found.seed}", f"again: {found.command}"]


def test_in_a_notebook_they_are_tables_of_html(real_store, tmp_path):
    runs = holdfast.load(real_store)
    page = runs._repr_html_()
    assert page.count("<table") == 1
    assert page.count("<tr>") == 3
    assert "href" not in page, "a notebook has no pages of runs"
    assert "script" not in page
    assert 'scope="row">replay</th>' in runs[3].record._repr_html_()
    odd = put(tmp_path, record(run="aaaaaaaaaaaa"))
    (odd / "record.json").write_text('"<script>alert(1)</script>"')
    (odd / "failure.txt").write_text("<b>bold</b>")
    assert "<script>" not in holdfast.load(tmp_path)._repr_html_()


def test_a_data_frame_has_every_setting(real_store):
    runs = holdfast.load(real_store)
    frame = runs.to_pandas()
    for run, (_, row) in zip(runs, frame.iterrows(), strict=True):
        named = [("benchmark", run.config["benchmark"]), ("model", run.config["model"])]
        named += [(each["name"], each) for each in run.config["algorithms"]]
        for owner, settings in named:
            for name, value in settings.items():
                assert name == "name" or row[f"{owner}.{name}"] == value or value is None
        for name, value in run.config["training"][0].items():
            assert row[f"train.{name}"] == value or value is None
        assert (row["precision"], row["data"]) == (run.config["precision"], run.config["data"])
    assert set(frame["replay.capacity"].dropna()) == {200}
    frame.to_csv()
    assert runs[0].row()["train.epochs"] == 1


def test_a_setting_that_differs_between_stages_is_a_list(tmp_path):
    made = record(run="aaaaaaaaaaaa")
    made["config"]["training"] = [{"epochs": 1, "batch_size": 8}, {"epochs": 2, "batch_size": 8}]
    put(tmp_path, made)
    row = holdfast.load(tmp_path)[0].row()
    assert (row["train.epochs"], row["train.batch_size"]) == ([1, 2], 8)
