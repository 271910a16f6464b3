"""The one script of the console page: it says when there is something new, and changes nothing. The page works without it."""

SCRIPT = """"use strict";
const news = document.getElementById("news");
const seen = document.body.dataset.mark;
const looking = setInterval(look, 4000);
async function look() {
  if (document.hidden) return;
  let words = "";
  try {
    const answer = await fetch("/mark", { cache: "no-store" });
    if (answer.ok && (await answer.text()) !== seen) words = "Something has happened since. Show it.";
    if (!answer.ok) {
      words = "This session has ended. Open the address that the station printed.";
      clearInterval(looking);
    }
  } catch { words = "The station does not answer: is it running?"; }
  news.hidden = !words;
  news.firstElementChild.textContent = words;
}
document.addEventListener("visibilitychange", look);
"""
