/**
 * What tools of others make of the documents: Redocly's recommended rules, and the types that openapi-typescript
 * generates. npx fetches them in pinned versions; where it cannot, the test is skipped, and says so.
 */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { Api } from "../../schemas/api/Api.ts"
import { partNames } from "../../src/http/docs/ApiParts.ts"
import { asyncApiDocument } from "../../src/http/docs/AsyncApiDocument.ts"
import { document } from "../../src/http/docs/Document.ts"
import { partDocument } from "../../src/http/docs/PartDocuments.ts"

/** Two rules are off for paths that the specification gives: `/v1/webhooks/`, `/v1/api-keys/`, and the mailed links'. */
const config = `
extends: [recommended]
rules:
  no-path-trailing-slash: off
  no-ambiguous-paths: off
`

const npx = (packages: ReadonlyArray<string>, command: string, cwd: string) =>
  spawnSync("npx", ["-y", ...packages.flatMap((name) => ["-p", name]), "-c", command], {
    cwd,
    encoding: "utf8",
    timeout: 240_000,
    env: { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" },
  })

const redocly = ["@redocly/cli@2.77.0"]
const generator = ["openapi-typescript@7.13.0", "typescript@5.9.3"]

const busParser = ["@asyncapi/parser@3.6.0"]
/** Prints what the parser complains of; npx puts the folder of its packages first in PATH. */
const parse = `
const { dirname, join } = require("node:path")
const { readFileSync } = require("node:fs")
const modules = dirname(process.env.PATH.split(":").find((one) => one.endsWith("node_modules/.bin")))
const { Parser } = require(join(modules, "@asyncapi/parser"))
new Parser().parse(readFileSync("asyncapi.json", "utf8")).then(({ diagnostics }) =>
  console.log(JSON.stringify(diagnostics.filter(({ severity }) => severity < 2).map(({ message, path }) => [message, path]))))
`

const within = (use: (folder: string) => void) => {
  const folder = mkdtempSync(join(tmpdir(), "document-"))
  try {
    const whole = document(Api)
    writeFileSync(join(folder, "openapi.json"), JSON.stringify(whole))
    for (const part of partNames) {
      writeFileSync(join(folder, `${part}.json`), JSON.stringify(partDocument(whole, part)))
    }
    writeFileSync(join(folder, "redocly.yaml"), config)
    use(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const reachable = (packages: ReadonlyArray<string>): boolean => {
  const found = npx(packages, "node --version", tmpdir()).status === 0
  if (!found) console.warn(`SKIPPED: npx cannot fetch ${packages.join(" ")}`)
  return found
}

describe("the document in others' hands", () => {
  it.skipIf(!reachable(redocly))("are clean by Redocly's recommended rules", () =>
    within((folder) => {
      for (const name of ["openapi", ...partNames]) {
        const { stderr, stdout } = npx(redocly, `redocly lint --format=json ${name}.json`, folder)
        const { problems } = JSON.parse(stdout.slice(stdout.indexOf("{"))) as {
          readonly problems: ReadonlyArray<{ readonly ruleId: string; readonly message: string }>
        }
        assert.deepStrictEqual(problems.map(({ message, ruleId }) => `${name} ${ruleId}: ${message}`), [], stderr)
      }
    }))

  it.skipIf(!reachable(generator))(
    "generate types that name an operation: in at most 250 KB for a part, 2,450 characters an operation for all",
    () =>
      within((folder) => {
        const typesOf = (name: string) => {
          const { status, stderr } = npx(generator, `openapi-typescript ${name}.json -o ${name}.ts`, folder)
          assert.strictEqual(status, 0, stderr)
          return readFileSync(join(folder, `${name}.ts`), "utf8")
        }
        assert.include(typesOf("mail"), `get: operations["getWebhook"]`)
        for (const part of partNames) assert.isBelow(typesOf(part).length, 250_000, part)
        // The contract gains operations; the generator's own text for each is 1,000 characters.
        const operations = Object.values(document(Api)["paths"] as Record<string, object>)
          .flatMap((methods) => Object.keys(methods)).length
        assert.isBelow(typesOf("openapi").length / operations, 2_450)
      }),
  )

  it.skipIf(!reachable(busParser))(
    "is valid AsyncAPI, without an error or a warning of its own parser",
    () =>
      within((folder) => {
        writeFileSync(join(folder, "asyncapi.json"), JSON.stringify(asyncApiDocument()))
        writeFileSync(join(folder, "parse.cjs"), parse)
        const { stderr, stdout } = npx(busParser, "node parse.cjs", folder)
        assert.strictEqual(stdout.trim(), "[]", stderr)
      }),
  )
})
