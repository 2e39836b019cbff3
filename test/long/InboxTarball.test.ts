/**
 * The package of `<bailiwick-inbox>` as a consumer has it: packed, installed into an empty folder, and the first program of
 * its README run on each runtime against a running program, with a browser at its page.
 */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { execFileSync } from "node:child_process"
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { freePort } from "../../src/embedded/FreePorts.ts"
import { fixture, type ProgramFixture } from "../e2e/support/ProgramFixture.ts"
import { until } from "../e2e/support/Until.ts"
import { browser, visitor } from "../support/Browser.ts"
import { clientRuntimes } from "../support/ClientPackage.ts"
import { inboxSnippets, installInbox } from "../support/InboxPackage.ts"
import { root, start } from "../support/Processes.ts"

class Around extends Context.Service<Around, ProgramFixture>()("bailiwick/test/long/InboxTarball/Around") {
  static readonly layer = Layer.effect(Around, fixture())
}

/** What a command prints; fails with all that it said. */
const said = (command: string, args: ReadonlyArray<string>, cwd: string) => {
  try {
    return execFileSync(command, args, { cwd, encoding: "utf8", stdio: "pipe" })
  } catch (error) {
    const { stderr, stdout } = error as { readonly stderr: string; readonly stdout: string }
    return assert.fail(`${command} ${args.join(" ")}\n${stdout}\n${stderr}`)
  }
}

const installed = Effect.acquireRelease(
  Effect.promise(async () => {
    const folder = mkdtempSync(join(tmpdir(), "inbox-"))
    return { folder, ...await installInbox(folder) }
  }),
  ({ folder }) => Effect.sync(() => rmSync(folder, { recursive: true, force: true })),
)

layer(Around.layer, { excludeTestServices: true, timeout: "4 minutes" })("the inbox's package", (it) => {
  it.effect("is clean, has types for a consumer, and its README's program works on each runtime", () =>
    Effect.gen(function* () {
      const { consumer, folder, tarball } = yield* installed
      assert.deepStrictEqual(readdirSync(join(consumer, "node_modules/@bailiwick")), ["inbox"])
      assert.deepStrictEqual(readdirSync(join(consumer, "node_modules/@bailiwick/inbox")).sort(), [
        "README.md",
        "dist",
        "package.json",
      ])
      said("npx", ["-y", "publint@0.3.25", tarball, "--strict"], folder)
      said("npx", ["-y", "@arethetypeswrong/cli@0.18.5", tarball, "--profile", "esm-only"], folder)
      const [use] = inboxSnippets("ts")
      writeFileSync(join(consumer, "use.ts"), use!)
      writeFileSync(
        join(consumer, "wrong.ts"),
        `import { BailiwickInbox } from "@bailiwick/inbox"
const inbox: BailiwickInbox = document.createElement("bailiwick-inbox")
// @ts-expect-error: no such word
inbox.words = { notification: "" }
// @ts-expect-error: it is counted
inbox.unread = 3
inbox.addEventListener("bailiwick-open", ({ detail }) => {
  // @ts-expect-error: a notification has a title
  detail.name
})
`,
      )
      const how = "--noEmit --strict --module nodenext --target es2024 --lib es2024,dom,dom.iterable --types"
      const [[, node]] = clientRuntimes() as [readonly [string, ReadonlyArray<string>]]
      said(
        node[0]!,
        [join(root, "node_modules/typescript/bin/tsc"), ...how.split(" "), "", "use.ts", "wrong.ts"],
        consumer,
      )

      const [first] = inboxSnippets("js")
      const { account, instance } = yield* Around
      const { key } = yield* account()
      const { page } = yield* visitor(yield* browser)
      for (const [name, command] of clientRuntimes()) {
        const port = yield* freePort()
        const file = join(consumer, `server-${port}.mjs`)
        writeFileSync(file, first!.replace("3000", String(port)))
        const env = { BAILIWICK_URL: instance.origin(), BAILIWICK_KEY: key }
        yield* Effect.gen(function* () {
          const program = yield* start({ command, module: file, cwd: consumer, env })
          const at = `http://127.0.0.1:${port}/`
          const ready = Effect.promise(() => fetch(at).then(({ status }) => status, () => 0))
          yield* until(`${name}: ${program.output()}`, ready, (status) => status === 200)
          yield* Effect.promise(() => page.goto(at))
          const badge =
            `document.querySelector("bailiwick-inbox")?.shadowRoot?.querySelector(".badge")?.textContent === "1"`
          yield* Effect.promise(() => page.waitForFunction(badge))
        }).pipe(Effect.scoped)
      }
      // A server that renders pages may load the module, too.
      writeFileSync(
        join(consumer, "import.mjs"),
        `import { BailiwickInbox } from "@bailiwick/inbox"
console.log(BailiwickInbox.observedAttributes.join())`,
      )
      for (const [name, [command, ...args]] of clientRuntimes()) {
        assert.strictEqual(said(command!, [...args, "import.mjs"], consumer).trim(), "base,inline", name)
      }
    }).pipe(Effect.scoped))
})
