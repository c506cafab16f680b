// Before anything is drawn: the colours that somebody chose here before.
"use strict";
{
  let chosen = null;
  try {
    chosen = localStorage.getItem("amends-theme");
  } catch {
    // Nothing may be kept here; the system's colours are used.
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
}
