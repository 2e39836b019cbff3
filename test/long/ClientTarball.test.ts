/** The client's package as a consumer has it: packed, and installed into an empty folder. */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { headersFor } from "../../services/webhooks/Signer.ts"
import { clientFolder, clientRuntimes, clientSnippets, installClient } from "../support/ClientPackage.ts"
import { root } from "../support/Processes.ts"

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

/** Verifies a request, and a changed one, on the runtime; calls a port on which no server listens. */
const module = `import { client, problems, verifyWebhook, WebhookRefused } from "@bailiwick/client"
const request = JSON.parse(process.env.REQUEST)
const event = await verifyWebhook(request)
const changed = await verifyWebhook({ ...request, body: request.body + " " }).catch((error) => error)
const lost = await client({ url: "http://127.0.0.1:1", retries: 0 }).get("/v1/webhooks/").catch((error) => error)
console.log([event.event, changed instanceof WebhookRefused, lost instanceof problems.unreachable].join(" "))
`

/** What a command prints; fails with all that it said. */
const said = (command: string, args: ReadonlyArray<string>, cwd: string, env: Record<string, string> = {}) => {
  try {
    return execFileSync(command, args, { cwd, encoding: "utf8", stdio: "pipe", env: { ...process.env, ...env } })
  } catch (error) {
    const { stderr, stdout } = error as { readonly stderr: string; readonly stdout: string }
    return assert.fail(`${command} ${args.join(" ")}\n${stdout}\n${stderr}`)
  }
}

describe("the client's package", () => {
  it("is clean, has types for a consumer, and runs on each runtime", async () => {
    const folder = mkdtempSync(join(tmpdir(), "client-"))
    try {
      const { consumer, tarball } = await installClient(folder)
      assert.deepStrictEqual(readdirSync(join(consumer, "node_modules/@bailiwick/client")).sort(), [
        "README.md",
        "dist",
        "package.json",
      ])
      said("npx", ["-y", "publint@0.3.25", tarball, "--strict"], folder)
      said("npx", ["-y", "@arethetypeswrong/cli@0.18.5", tarball, "--profile", "esm-only"], folder)
      const snippets = clientSnippets()
      assert.isAtLeast(snippets.length, 6)
      snippets.forEach((text, n) => writeFileSync(join(consumer, `snippet-${n}.mts`), text))
      writeFileSync(
        join(consumer, "wrong.mts"),
        `import { client } from "@bailiwick/client"
const api = client()
// @ts-expect-error: no such path
await api.get("/v1/webhook")
// @ts-expect-error: a parameter is missing
await api.get("/v1/webhooks/{webhook_id}")
// @ts-expect-error: no such event
await api.post("/v1/webhooks/", { body: { url: "https://example.com", events: ["email.lost"] } })
// @ts-expect-error: this one has no pages
api.pages("/v1/webhooks/")
`,
      )
      const how = "--noEmit --strict --module nodenext --target es2024 --lib es2024,dom,dom.iterable,dom.asynciterable"
      const types = ["--types", "node", "--typeRoots", join(root, "node_modules/@types")]
      const files = [...snippets.map((_, n) => `snippet-${n}.mts`), "wrong.mts"]
      const [[, node]] = clientRuntimes() as [readonly [string, ReadonlyArray<string>]]
      const compiler = join(root, "node_modules/typescript/bin/tsc")
      said(node[0]!, [compiler, ...how.split(" "), ...types, ...files], consumer)
      const body = JSON.stringify({ event: "email.sent" })
      const timestampSeconds = Math.floor(Date.now() / 1000)
      const signed = { deliveryId: "d", eventType: "email.sent", attempt: 1, timestampSeconds, body }
      const headers = Object.fromEntries(
        Object.entries(headersFor({ ...signed, secrets: [secret] })).map((
          [name, value],
        ) => [name.toLowerCase(), value]),
      )
      writeFileSync(join(consumer, "main.mjs"), module)
      const env = { REQUEST: JSON.stringify({ headers, body, secret }) }
      for (const [name, [command, ...args]] of clientRuntimes()) {
        assert.strictEqual(said(command!, [...args, "main.mjs"], consumer, env), "email.sent true true\n", name)
      }
      // What JSR publishes.
      const deno = clientRuntimes().at(-1)![1][0]!
      said(deno, ["publish", "--dry-run", "--allow-dirty", "--no-lock"], clientFolder)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})
