"""What a run released is written in other formats, reads back, and says its epsilon."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas
import pytest
from safetensors import safe_open
from sklearn.linear_model import Lasso, LogisticRegression
from typer.testing import CliRunner

import hedgerow as hr
from hedgerow import sklearn as federated
from hedgerow.cli.main import app
from hedgerow.errors import CannotWrite, FormulaInvalid, MissingData, ModelInvalid, StudyInvalid, UnknownStudy
from hedgerow.export import export, read_run
from hedgerow.export.card import model_card
from hedgerow.study import parse, run_study

FORMULA = "malignant ~ mean_radius + mean_texture"
STUDIES = {
    "fit": {"name": "logistic_regression", "formula": FORMULA},
    "levels": {"name": "logistic_regression", "formula": "malignant ~ mean_radius + I(mean_texture > 20)"},
    "lasso": {"name": "penalised_regression", "formula": "mean_area ~ mean_radius + mean_texture", "penalty": 2.0},
    "tree": {"name": "decision_tree", "depth": 3, "n_bins": 8},
    "means": {"name": "means"},
    "private": {"name": "logistic_regression", "formula": FORMULA, "rounds": 2},
}
PRIVATE = {
    "protection": {"mechanism": {"noise_multiplier": 5.0}},
    "budget": {"epsilon": 20.0, "delta": 1e-5, "unit": "record"},
    "seed": 20261123,
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Run folders by name, made when they are asked for."""
    folder, made = tmp_path_factory.mktemp("runs"), {}

    def run(name):
        if name not in made:
            about = {
                "name": name,
                "data": {"name": "breast_cancer"},
                "partition": {"by": "iid", "parties": 2},
                "baselines": False,
            }
            more = PRIVATE if name == "private" else {}
            made[name] = run_study(parse(about | {"program": STUDIES[name]} | more), folder / name).folder
        return made[name]

    return run


@pytest.fixture(scope="module")
def tumours():
    return hr.data.load("breast_cancer")


@pytest.fixture(scope="module")
def session():
    """An ONNX file, ready to be asked."""
    runtime = pytest.importorskip("onnxruntime")
    return lambda path: runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def metadata(path):
    with safe_open(path, framework="numpy") as file:
        return file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


@pytest.mark.slow
def test_coefficients_come_back_from_safetensors_and_scikit_learn(runs, tumours):
    about, arrays = metadata(export(runs("fit"), "safetensors"))
    table = pandas.read_csv(runs("fit") / "coefficients.csv")
    assert json.loads(about["names"]) == table["term"].tolist()
    np.testing.assert_array_equal(arrays["coef"], table["coef"])
    model = federated.load(export(runs("fit"), "sklearn"))
    assert type(model) is LogisticRegression
    np.testing.assert_array_equal([*model.intercept_, *model.coef_[0]], table["coef"])
    frame = tumours.to_pandas()
    hospitals = hr.simulate(tumours, hr.data.iid(parties=2), seed=0)
    expected = federated.FederatedLogisticRegression(FORMULA).fit(hospitals).predict_proba(frame)
    np.testing.assert_allclose(model.predict_proba(frame[["mean_radius", "mean_texture"]]), expected, atol=1e-12)
    lasso = federated.load(export(runs("lasso"), "sklearn"))
    theirs = Lasso(alpha=2.0, tol=1e-12, max_iter=100_000)
    theirs.fit(frame[["mean_radius", "mean_texture"]], frame["mean_area"])
    assert (type(lasso), lasso.alpha) == (Lasso, 2.0)
    np.testing.assert_allclose(lasso.coef_, theirs.coef_, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fit", "lasso", "tree"])
def test_onnx_predicts_what_scikit_learn_predicts(name, runs, session, tumours):
    model, graph = federated.load(export(runs(name), "sklearn")), session(export(runs(name), "onnx"))
    told = graph.get_modelmeta().custom_metadata_map
    features = json.loads(told["features"])
    assert features == list(model.feature_names_in_)
    X = tumours.to_pandas()[features]
    found = graph.run(None, {"X": X.to_numpy(np.float32 if name == "tree" else np.float64)})
    np.testing.assert_allclose(found[0].ravel(), model.predict(X), rtol=1e-6)
    if name != "lasso":
        np.testing.assert_allclose(found[1], model.predict_proba(X), atol=1e-5)
    assert told["epsilon"] == "none: not differentially private"
    assert told["study"] == name


@pytest.mark.slow
def test_a_tree_comes_back_as_scikit_learns(runs, tumours):
    model = federated.load(export(runs("tree"), "sklearn"))
    hospitals = hr.simulate(tumours, hr.data.iid(parties=2), seed=0)
    grown = hr.trees.decision_tree(hospitals, depth=3, n_bins=8)
    frame = tumours.to_pandas()
    np.testing.assert_array_equal(model.predict_proba(frame[list(model.feature_names_in_)]), grown.probabilities(frame))
    _, arrays = metadata(export(runs("tree"), "safetensors"))
    np.testing.assert_array_equal(arrays["value"], grown.state.value)


@pytest.mark.slow
def test_a_trained_module_is_torchs_in_onnx(tmp_path, session):
    import torch

    from hedgerow.learn import evaluate_on
    from hedgerow.learn.models import mlp

    program = {"name": "fedavg", "rounds": 1, "model": "mlp", "hidden": [6]}
    about = {"name": "net", "data": {"name": "adult"}, "partition": {"by": "iid", "parties": 2}, "baselines": False}
    table = made_up()
    table.to_pandas().to_csv(tmp_path / "patients.csv", index=False)
    columns = {"age": {"range": [0, 100]}, "change": {"range": [-2, 2]}, "ward": {"levels": ["a", "b", "c"]}}
    columns |= {"stage": {"levels": ["I", "II", "III"], "role": "target"}}
    about |= {"program": program, "data": {"path": str(tmp_path / "patients.csv"), "columns": columns}}
    folder = run_study(parse(about), tmp_path / "run").folder
    graph = session(export(folder, "onnx"))
    told = graph.get_modelmeta().custom_metadata_map
    assert json.loads(told["features"]) == ["age", "change", "ward"]
    assert json.loads(told["classes"]) == ["I", "II", "III"]
    X = np.stack([table[name] for name in ("age", "change", "ward")], 1).astype(float)
    (found,) = graph.run(None, {"X": X})
    by_hand = np.stack([X[:, 0] / 100, X[:, 1] / 2, *(X[:, 2] == level for level in range(3))], 1)
    _, weights = metadata(export(folder, "safetensors"))
    module = mlp(5, [6], 3)
    module.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
    with torch.no_grad():
        expected = torch.softmax(module(torch.from_numpy(by_hand).float()), 1).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-5)
    share = (found.argmax(1) == table["stage"]).mean()
    assert share == pytest.approx(evaluate_on(table, module, weights)["accuracy"])
    with pytest.raises(StudyInvalid, match="no estimator of scikit-learn"):
        export(folder, "sklearn")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["digits", "breast_cancer"])
def test_a_predictor_of_records_is_the_model_that_was_evaluated(name, tmp_path):
    import torch

    from hedgerow.export.module import reader
    from hedgerow.learn import evaluate_on
    from hedgerow.learn.results import module_for

    program = {"name": "fedavg", "rounds": 1, "learning_rate": 0.5}
    about = {"name": name, "data": {"name": name}, "partition": {"by": "iid", "parties": 2}, "baselines": False}
    run = read_run(run_study(parse(about | {"program": program}), tmp_path / "run").folder)
    module, example, told = reader(run)
    table = hr.data.load(name)
    features = json.loads(told["features"])
    X = table["image"] if name == "digits" else np.stack([table[one] for one in features], 1)
    with torch.no_grad():
        found = module(torch.from_numpy(X).to(example.dtype)).numpy()
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-6)
    expected = evaluate_on(table, module_for(run.schema, run.settings), run.arrays)["accuracy"]
    assert (found.argmax(1) == table[table.schema.target]).mean() == pytest.approx(expected, abs=1e-9)
    assert expected > 0.5


@pytest.mark.slow
def test_a_module_with_inputs_of_its_own_has_no_graph_and_keeps_its_weights(tmp_path):
    task = {"inputs": {"columns": "image", "dtype": "float32"}, "loss": "cross_entropy"}
    program = {"name": "fedavg", "rounds": 1, "path": "eager", "task": task}
    about = {"name": "task", "data": {"name": "digits"}, "partition": {"by": "iid", "parties": 2}, "baselines": False}
    folder = run_study(parse(about | {"program": program}), tmp_path / "run").folder
    with pytest.raises(StudyInvalid, match="no module that reads records"):
        export(folder, "onnx")
    assert metadata(export(folder, "safetensors"))[1].keys() == {"1.weight", "1.bias"}


@pytest.mark.slow
def test_several_classes_are_those_of_the_fit(tmp_path, session):
    table = made_up()
    path = tmp_path / "patients.csv"
    table.to_pandas().to_csv(path, index=False)
    columns = {"age": {"range": [0, 100]}, "stage": {"levels": ["I", "II", "III"]}}
    about = {"name": "stages", "data": {"path": str(path), "columns": columns}, "partition": {"by": "iid", "parties": 2}}
    program = {"name": "multinomial_regression", "formula": "stage ~ age + change"}
    folder = run_study(parse(about | {"program": program, "baselines": False}), tmp_path / "run").folder
    model = federated.load(export(folder, "sklearn"))
    frame = table.to_pandas()
    fit = hr.stats.multinomial_regression(hr.simulate(table, hr.data.iid(parties=2), seed=0), program["formula"])
    X = frame[["age", "change"]]
    np.testing.assert_allclose(model.predict_proba(X), fit.predict(frame), atol=1e-9)
    assert list(model.classes_) == ["I", "II", "III"]
    found = session(export(folder, "onnx")).run(None, {"X": X.to_numpy(np.float64)})
    np.testing.assert_allclose(found[1], fit.predict(frame), atol=1e-5)
    assert str(path) not in export(folder, "model-card").read_text()


def made_up():
    """Patients of three stages, with columns of every kind."""
    rng = np.random.default_rng(0)
    age, ward = rng.integers(20, 90, 600), rng.choice(["a", "b", "c"], 600)
    stage, change = rng.choice(["I", "II", "III"], 600), rng.uniform(-2, 2, 600)
    frame = pandas.DataFrame({"age": age, "change": change, "ward": ward, "stage": stage})
    return hr.data.Table.from_pandas(
        frame,
        declared={"age": {"kind": "integer", "range": (0, 100)}, "change": {"kind": "number", "range": (-2, 2)}},
        target="stage",
    )


# ---- the card -------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_the_card_says_epsilon_of_the_ledger(runs):
    folder = runs("private")
    text = export(folder, "model-card").read_text()
    run = read_run(folder)
    budget = hr.Budget(20.0, 1e-5, unit="record")
    spent = budget.spent(run.ledger.charges("record"))
    assert f"| epsilon | {spent:.4g} |" in text
    assert run.said.sentence == run.report.privacy
    said = ("| delta | 1e-05 |", "| unit | record |", "| neighbours | add-remove adj", "| noise | Gaussian(5) at the server |")
    assert [line for line in said if line not in text] == []
    about, _ = metadata(export(folder, "safetensors"))
    assert (float(about["epsilon"]), float(about["delta"]), about["unit"]) == (spent, 1e-5, "record")
    assert "## Licence\n\nTo be chosen" in text


@pytest.mark.slow
def test_nothing_exported_gives_a_simulations_seed_away(runs):
    """The digest of a study covers its seed, which is found by trying numbers."""
    run = read_run(runs("private"))
    digest, seed = run.study.digest, str(run.study.seed)
    about, _ = metadata(export(run.path, "safetensors"))
    told = [export(run.path, "model-card").read_text(), json.dumps(about), export(run.path, "sklearn").read_text()]
    assert [text for text in told if digest in text or seed in text or "digest" in text] == []
    system = replace(run, study=run.study.model_copy(update={"seed": "system"}))
    assert system.about["study digest"] == system.study.digest
    assert f"| study digest | {digest} |" in model_card(system)


@pytest.mark.slow
def test_more_in_the_ledger_is_more_on_the_card(runs, tmp_path):
    """The card does not repeat the report: it counts the ledger again."""
    import shutil

    folder = shutil.copytree(runs("private"), tmp_path / "run")
    before = read_run(folder).said.epsilon
    (folder / "ledger.jsonl").write_text(
        "\n".join((folder / "ledger.jsonl").read_text().splitlines()[:-1]) + "\n"
    )  # one question fewer: the rest of the chain is whole
    assert read_run(folder).said.epsilon < before


@pytest.mark.slow
def test_runs_that_share_a_budget_are_counted_together(tmp_path):
    shared = {"budget": PRIVATE["budget"] | {"ledger": str(tmp_path / "all.sqlite")}, "protection": PRIVATE["protection"]}
    about = {"data": {"name": "breast_cancer"}, "program": STUDIES["private"], "partition": {"by": "iid", "parties": 2}}
    spent = []
    for name in ("first", "second"):
        run_study(parse(about | shared | {"name": name, "baselines": False}), tmp_path / name)
        spent.append(read_run(tmp_path / "first").said.epsilon)
    assert spent[1] > spent[0]
    assert read_run(tmp_path / "second").said.epsilon == spent[1]
    assert "| questions in the ledger | 4 |" in export(tmp_path / "first", "model-card").read_text()


@pytest.mark.slow
def test_a_run_without_noise_claims_no_epsilon(runs):
    text = export(runs("fit"), "model-card").read_text()
    assert "| epsilon | none is claimed |" in text
    assert "No differential privacy is claimed" in text
    assert "differential-privacy]" not in text


@pytest.mark.slow
def test_the_card_has_what_the_report_has_and_neither_seed_nor_paths(runs):
    folder = runs("private")
    text, report = export(folder, "model-card").read_text(), read_run(folder).report
    assert "20261123" not in text
    assert str(folder) not in text
    assert "| mean_radius | number | feature | 0 to 40 |" in text
    assert "worst_area" not in text  # the formula does not read it
    for row in report.published.rows:
        assert " ".join(str(row[0]).split()) in text
    files = (folder / name for name in ("schema.json", "ledger.jsonl"))
    allowed = json.dumps(report.to_json()) + "".join(file.read_text() for file in files)
    known = set(map(float, re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", allowed)))
    spent = read_run(folder).said.epsilon
    numbers = {float(found) for found in re.findall(r"(?<![\w.])-?\d+\.\d+(?:e-?\d+)?", text)}
    strange = {x for x in numbers if not any(abs(x - y) <= 1e-5 * abs(y) for y in known | {round(spent, 3)})}
    assert strange == set()


# ---- refusals -------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_what_cannot_be_exported_says_why(runs, tmp_path):
    with pytest.raises(UnknownStudy):
        read_run(tmp_path)
    with pytest.raises(StudyInvalid, match="no format"):
        export(runs("fit"), "pickle")
    with pytest.raises(CannotWrite, match="files of the run"):
        export(runs("fit"), "model-card", runs("fit") / "ledger.jsonl")
    with pytest.raises(FormulaInvalid, match="no column of numbers"):
        export(runs("levels"), "sklearn")
    for to in ("onnx", "sklearn", "safetensors"):
        with pytest.raises(StudyInvalid, match="has no"):
            export(runs("means"), to)
    assert (
        export(runs("means"), "model-card", tmp_path / "new" / "card.md").read_text().startswith("---\nlibrary_name: hedgerow")
    )


@pytest.mark.slow
def test_a_run_of_an_older_version_has_no_columns(runs, tmp_path):
    import shutil

    folder = shutil.copytree(runs("fit"), tmp_path / "run")
    (folder / "schema.json").unlink()
    with pytest.raises(MissingData, match=r"schema\.json"):
        export(folder, "sklearn")
    assert "Parties: 2" in export(folder, "model-card").read_text()
    assert "schema" not in metadata(export(folder, "safetensors"))[0]


@pytest.mark.parametrize(
    "change",
    [
        {"nodes": {"left_child": [0, -1, -1]}},
        {"nodes": {"left_child": [7, -1, -1]}},
        {"nodes": {"feature": [9, -2, -2]}},
        {"values": [[1.0], [0.0], [0.5]]},
        {"settings": {"splitter": "best"}},
        {"estimator": "os.system"},
        {"format": 2},
        {"features": ["a"]},
    ],
    ids=str,
)
def test_a_file_of_a_tree_is_checked_before_it_is_used(change, tmp_path):
    model = federated.FederatedDecisionTreeClassifier(max_depth=1, min_samples_leaf=1).fit(
        [[0.0, 1], [1, 0], [2, 0]], [0, 1, 1]
    )
    path = tmp_path / "tree.json"
    federated.save(model, path, {"epsilon": "none"})
    np.testing.assert_array_equal(federated.load(path).predict([[0.0, 1], [2, 0]]), [0, 1])
    told = json.loads(path.read_text())
    nodes = told["nodes"] | change.pop("nodes", {})
    path.write_text(json.dumps(told | {"nodes": nodes} | change))
    with pytest.raises(ModelInvalid):
        federated.load(path)


def test_an_estimator_of_another_kind_is_not_written(tmp_path):
    from sklearn.svm import SVC

    with pytest.raises(ModelInvalid, match="SVC"):
        federated.save(SVC(), tmp_path / "model.json")
    with pytest.raises(ModelInvalid, match="no file"):
        federated.load(tmp_path / "model.json")


@pytest.mark.slow
def test_the_command_writes_beside_the_run_and_says_the_guarantee(runs):
    told = CliRunner().invoke(app, ["export", str(runs("private")), "--to", "model-card"])
    assert told.exit_code == 0
    assert "README.md" in told.output
    assert "Epsilon" in told.output
    assert (runs("private") / "export" / "README.md").exists()
