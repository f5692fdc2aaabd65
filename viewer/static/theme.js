// The chosen colours, before anything is drawn. page.js and viewer.js let people choose.
try {
  const theme = localStorage.getItem("evicat-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // a browser may forbid to keep anything: then its own setting holds
}
