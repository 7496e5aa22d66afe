"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const rows = [...document.querySelectorAll("table.filtered > tbody > tr:not(.version)")];
  const words = rows.map((row) => `${row.textContent} ${row.cells[0].title}`.toLowerCase());
  const filter = () => {
    const text = byId("filter-text").value.trim().toLowerCase();
    let count = 0;
    rows.forEach((row, place) => {
      row.hidden = !words[place].includes(text);
      count += row.hidden ? 0 : 1;
    });
    byId("filter-count").textContent = `${count} of ${rows.length} lines`;
  };
  byId("filters").addEventListener("input", filter);
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("filters").addEventListener("reset", () => setTimeout(filter));
  filter();
})();
