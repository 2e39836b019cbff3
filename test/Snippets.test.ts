/** Every snippet of a page is run by a test: which one, by page and language. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { spawnSync } from "node:child_process"
import { cpSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { consoleIssuers, transmitters } from "../src/AppConfig/Parsers.ts"

const root = fileURLToPath(new URL("..", import.meta.url))
const read = (path: string) => readFileSync(join(root, path), "utf8")

/** The test that runs a page's snippets of a language; it reads them from the page. */
const runBy: Readonly<Record<string, string>> = {
  "README.md sh": "test/e2e/PageCommands.test.ts",
  "deploy/npm/README.md sh": "test/long/BundlePackage.test.ts",
  "docs/commands.md sh": "test/e2e/AccountCommands.test.ts",
  "docs/console.md json": "test/Snippets.test.ts",
  "docs/console.md sh": "test/e2e/PageCommands.test.ts",
  "docs/console.md tsx": "test/Snippets.test.ts",
  "docs/evidence.md ts": "test/Snippets.test.ts",
  "docs/identity.md sh": "test/e2e/PageCommands.test.ts",
  "docs/keys.md sh": "test/e2e/PageCommands.test.ts",
  "docs/lifecycle.md js": "test/services/lifecycle/LifecyclePage.test.ts",
  "docs/lifecycle.md sh": "test/e2e/PageCommands.test.ts",
  "docs/metrics.md yaml": "test/Snippets.test.ts",
  "docs/recovery.md sh": "test/e2e/PageCommands.test.ts",
  "docs/signals.md json": "test/Snippets.test.ts",
  "docs/streams.md json": "test/services/event-streams/ScimTwin.test.ts",
  "docs/streams.md sh": "test/e2e/PageCommands.test.ts",
  "docs/subscribing.md sh": "test/e2e/PageCommands.test.ts",
  "docs/transparency.md json": "test/Snippets.test.ts",
  "docs/transparency.md ts": "test/Snippets.test.ts",
  "docs/upgrading.md ts": "test/src/MigrationBackfills.test.ts",
  "docs/webhooks.md go": "test/ReceivingWebhooks.test.ts",
  "docs/webhooks.md http": "test/ReceivingWebhooks.test.ts",
  "docs/webhooks.md json": "test/ReceivingWebhooks.test.ts",
  "docs/webhooks.md php": "test/ReceivingWebhooks.test.ts",
  "docs/webhooks.md python": "test/ReceivingWebhooks.test.ts",
  "docs/webhooks.md ruby": "test/ReceivingWebhooks.test.ts",
  "docs/webhooks.md sh": "test/ReceivingWebhooks.test.ts",
  "docs/webhooks.md ts": "test/ReceivingWebhooks.test.ts",
  "examples/product/README.md sh": "test/e2e/PageCommands.test.ts",
  "sdk/README.md js": "test/long/KitPackage.test.ts",
  "sdk/README.md ts": "test/Snippets.test.ts",
  "sdk/client/README.md ts": "test/long/ClientTarball.test.ts",
  "sdk/inbox/README.md css": "test/e2e/InboxInBrowser.test.ts",
  "sdk/inbox/README.md html": "test/e2e/InboxInBrowser.test.ts",
  "sdk/inbox/README.md js": "test/long/InboxTarball.test.ts",
  "sdk/inbox/README.md ts": "test/long/InboxTarball.test.ts",
}

/** Drawings and texts, which nothing runs. */
const shown = new Set(["mermaid", "text", ""])

/** Snippets that no test can run as they stand, and why. */
const notRun: Readonly<Record<string, string>> = {
  "docs/evidence.md sh": "ids and keys of an installation: test/e2e/AccountCommands.test.ts tries both commands",
  "docs/processes.md sh": "kubectl needs a cluster: test/Kubernetes.test.ts reads the key ring that the snippet makes",
  "docs/transparency.md sh":
    "a witness has a public name and a folder: test/sdk/Witness.test.ts tries the kit's witness",
}

const pages = globSync(["*.md", "{docs,sdk,examples,deploy}/**/*.md"], { cwd: root })
  .filter((path) => !path.includes("node_modules") && path !== "CHANGELOG.md")

const snippetsOf = (page: string) =>
  [...read(page).matchAll(/^( *)```(\w*)\n([\s\S]*?)^ *```$/gm)]
    .map(([, indent, language, text]) => ({
      language: language!,
      text: text!.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
    }))

const texts = (page: string, language: string) =>
  snippetsOf(page).flatMap((snippet) => snippet.language === language ? [snippet.text] : [])

/** What the snippets of the kit's README leave to the product. */
const ofTheProduct = `
import type { ReceiveOptions } from "@bailiwick/lifecycle/receive"
import type { TreeHead } from "@bailiwick/lifecycle/transparency"
declare global {
  const accessTokenFor: (audience: string) => Promise<string>
  const stopping: AbortController
  const [issuer, subject, sid, proof, checkpoint]: [string, string, string, string, string]
  const authTime: number
  const answer: { readonly proof: string; readonly record: unknown; readonly salt: string }
  const options: Omit<ReceiveOptions<unknown>, "streamId" | "authorization">
  const server: { readonly post: (path: string, answer: (request: Request) => Promise<Response>) => void }
  const [entry, hashes, witnessKeys, earlier]: [Uint8Array, ReadonlyArray<Uint8Array>, ReadonlyArray<string>, TreeHead]
}
`

/** What the compiler says of these files, beside the project's own. */
const typeChecked = (folder: string, files: Readonly<Record<string, string>>, options: object) => {
  const made = mkdtempSync(join(root, folder, ".snippets-"))
  try {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(made, name), text)
    const config = {
      extends: join(root, "tsconfig.json"),
      compilerOptions: { incremental: false, ...options },
      include: ["*"],
    }
    writeFileSync(join(made, "tsconfig.json"), JSON.stringify(config))
    const run = "Deno" in globalThis ? ["run", "-A", "--node-modules-dir=manual", "--no-lock"] : []
    const compiler = join(root, "node_modules/typescript/bin/tsc")
    return spawnSync(process.execPath, [...run, compiler, "-p", made], { encoding: "utf8", cwd: root }).stdout
  } finally {
    rmSync(made, { recursive: true })
  }
}

describe("snippets", () => {
  it("each have a test that reads them from their page", () => {
    const found = new Set(
      pages.flatMap((page) => snippetsOf(page).map(({ language }) => `${page} ${language}`))
        .filter((name) => !shown.has(name.split(" ")[1]!)),
    )
    assert.deepStrictEqual([...found].sort(), [...Object.keys(runBy), ...Object.keys(notRun)].sort())
    // Tests of packages read their README by the package's folder.
    const readers: Readonly<Record<string, RegExp>> = {
      "sdk/client/README.md": /clientSnippets\(/,
      "sdk/inbox/README.md": /inboxSnippets\(/,
      "deploy/npm/README.md": /README|npx/,
    }
    for (const [name, test] of Object.entries(runBy)) {
      const [page] = name.split(" ") as [string]
      assert.isTrue(existsSync(join(root, test)), test)
      assert.match(read(test), readers[page] ?? new RegExp(page.replaceAll(".", "\\.")), `${test} reads ${page}`)
    }
  })

  it("of the kit's README and of the pages on evidence have right types", () => {
    const { exports } = JSON.parse(read("sdk/deno.json")) as { readonly exports: Readonly<Record<string, string>> }
    const paths = Object.fromEntries(
      Object.entries(exports).map((
        [name, file],
      ) => [`@bailiwick/lifecycle/${name.slice(2)}`, [join(root, "sdk", file)]]),
    )
    const all = [
      ...texts("sdk/README.md", "ts"),
      ...texts("docs/transparency.md", "ts"),
      ...texts("docs/evidence.md", "ts"),
    ]
    const files = all.map((text, n) => [`snippet-${n}.ts`, text])
    assert.isAtLeast(files.length, 4)
    assert.strictEqual(typeChecked("test", { ...Object.fromEntries(files), "product.ts": ofTheProduct }, { paths }), "")
  }, 120_000)

  it("of docs/console.md are a screen with right types, and issuers that the program takes", () => {
    const [screen, ...more] = texts("docs/console.md", "tsx")
    assert.lengthOf(more, 0)
    assert.strictEqual(typeChecked("console", { "Snippet.tsx": screen! }, {}), "")
    for (const text of texts("docs/transparency.md", "json")) assert.isObject(JSON.parse(text))
    const folder = mkdtempSync(join(tmpdir(), "snippets-"))
    try {
      writeFileSync(join(folder, "console"), "secret")
      const [issuers] = texts("docs/console.md", "json")
      const parsed = consoleIssuers(issuers!.replace("/run/secrets/console", join(folder, "console")))
      assert.isTrue(Result.isSuccess(parsed))
    } finally {
      rmSync(folder, { recursive: true })
    }
  }, 120_000)

  it("of docs/signals.md are transmitters that the program takes", () => {
    for (const text of texts("docs/signals.md", "json")) assert.isTrue(Result.isSuccess(transmitters(text)))
  })

  it("of docs/metrics.md are a configuration that Prometheus takes", ({ skip }) => {
    if (spawnSync("promtool", ["--version"]).error !== undefined) {
      return skip("promtool (Debian's package prometheus) is not installed: no configuration was checked")
    }
    const folder = mkdtempSync(join(tmpdir(), "prometheus-"))
    try {
      cpSync(join(root, "deploy/prometheus/alerts.yml"), join(folder, "alerts.yml"))
      for (const text of texts("docs/metrics.md", "yaml")) {
        writeFileSync(join(folder, "prometheus.yml"), text)
        const { status, stderr, stdout } = spawnSync("promtool", ["check", "config", join(folder, "prometheus.yml")], {
          encoding: "utf8",
        })
        assert.strictEqual(status, 0, stdout + stderr)
      }
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
