// Light or dark: as the system says, unless the reader chose.

export function toggleTheme() {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  setTheme(isDark ? "light" : "dark");
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("evicat-theme", theme);
  } catch {
    // a browser may forbid files to keep anything; the choice holds until the page is closed
  }
}

function keptTheme() {
  try {
    return localStorage.getItem("evicat-theme");
  } catch {
    return null;
  }
}

export function startTheme() {
  const theme = keptTheme();
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  document.getElementById("theme").addEventListener("click", toggleTheme);
}
