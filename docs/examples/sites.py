import hedgerow as hr
from hedgerow.stats import meta_analysis, mixed_logistic, within_sites

hospitals = hr.simulate(hr.data.load("breast_cancer"), hr.data.iid(parties=6), seed=0)
formula = "malignant ~ I(mean_texture / 10) + I(mean_smoothness * 100)"

within = within_sites(hospitals, formula, family="binomial")
meta = meta_analysis(hospitals, formula, sites_shown=True)
mixed = mixed_logistic(hospitals, f"{formula} + (1 | site)")

name = "I(mean_texture / 10)"
texture = meta[name]
print(f"fixed effects by site   {within.to_frame().loc[name, 'coef']:.3f}")
print(f"mean of sites           {texture.mean:.3f} ({texture.interval()[0]:.3f} to {texture.interval()[1]:.3f})")
print(f"random intercepts       {mixed.to_frame().loc[name, 'coef']:.3f}")
print(f"another hospital        {texture.prediction()[0]:.3f} to {texture.prediction()[1]:.3f}")
print(texture.sentence)
print(meta.sites(name).round(3).to_string())
