"use strict";
// The theme: as the system has it until the button says otherwise. From a file there may be nowhere to remember it.
const root = document.documentElement;
const remembered = {
  read() { try { return localStorage.getItem("dmt-theme"); } catch { return null; } },
  write(theme) { try { localStorage.setItem("dmt-theme", theme); } catch { /* forgotten, no more */ } },
};
const theme = remembered.read();
if (theme === "light" || theme === "dark") root.dataset.theme = theme;
document.getElementById("theme").addEventListener("click", () => {
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  root.dataset.theme = (root.dataset.theme || system) === "dark" ? "light" : "dark";
  remembered.write(root.dataset.theme);
});

// Tables: a click on a column's name sorts by it, another one the other way round; empty cells stay at the end.
function key(row, column) {
  const cell = row.cells[column];
  if (!cell) return "";
  const said = "sort" in cell.dataset ? cell.dataset.sort : cell.textContent.trim();
  const number = Number(said.replace(/,/g, "").replace("−", "-").replace(/%$/, ""));
  return said === "" || said === "–" ? "" : Number.isNaN(number) ? said : number;
}
function compare(one, two) {
  if (typeof one === "number" && typeof two === "number") return one - two;
  return String(one).localeCompare(String(two), "en", { numeric: true });
}
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows].map((row) => [key(row, column), row]);
    rows.sort(([one], [two]) => {
      if (one === "" || two === "") return (one === "") - (two === "");
      return down ? compare(two, one) : compare(one, two);
    });
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }));
}
