"use strict";

const page = document.getElementById("swagger-ui");
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);

follow();
dark.addEventListener("change", follow);

SwaggerUIBundle({
  domNode: page,
  url: page.dataset.schemaUrl,
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  validatorUrl: "none", // else the page's address goes to a public validator
});
