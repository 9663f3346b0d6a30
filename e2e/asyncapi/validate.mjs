// Validates an AsyncAPI document with the official parser: node validate.mjs FILE.
// Warnings fail too: the document is generated, so there is no excuse for one.
import { readFile } from "node:fs/promises";
import { Parser } from "@asyncapi/parser";

const file = process.argv[2];
const { document, diagnostics } = await new Parser().parse(await readFile(file, "utf8"));
const findings = diagnostics.filter((d) => d.severity <= 1); // 0 error, 1 warning
for (const d of findings) {
  console.error(`${file}:${d.range.start.line + 1}: ${d.message} (${d.path.join(".")})`);
}
if (!document || findings.length > 0) {
  process.exit(1);
}
console.log(`${file}: AsyncAPI ${document.version()}, ${document.operations().length} operations, ${document.schemas().length} schemas`);
