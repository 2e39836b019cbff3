/**
 * The shell lines of the pages, run in a page's order against a program with its demo, as a reader types them. Only
 * what differs on a test's machine is replaced: the home, the ports, and the spelling of Deno.
 */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { freePort } from "../../src/embedded/FreePorts.ts"
import { clientSnippets } from "../support/ClientPackage.ts"
import { root, runtime, start } from "../support/Processes.ts"
import { fixture, type ProgramFixture } from "./support/ProgramFixture.ts"

class Around extends Context.Service<Around, ProgramFixture>()("bailiwick/test/e2e/PageCommands/Around") {
  static readonly layer = Layer.effect(
    Around,
    fixture({ DEMO: "true", MAIL_ISSUERS: "", EMBED_ORIGINS: "https://app.example" }),
  )
}

/** The shell blocks of a page, in its order. */
const shellOf = (page: string): ReadonlyArray<string> =>
  [...readFileSync(page, "utf8").matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, text]) => text!)

/** The lines with a command that stays in the shell's own place, so that it ends when the test ends the shell. */
const staying = (text: string, command: string) => {
  assert.include(text, command)
  return text.replace(command, `exec ${command}`)
}

const word = (text: string) => `'${text}'`
const run = runtime().map(word).join(" ")

/** A page's reader: a folder of its own, and addresses that are put in the place of those on the page. */
const reader = Effect.gen(function* () {
  const { home, instance } = yield* Around
  const folder = mkdtempSync(join(home, "reader-"))
  const ports = {
    "8080": new URL(instance.origin()).port,
    "9000": `${yield* freePort()}`,
    "9100": `${yield* freePort()}`,
  }
  const here = (text: string) =>
    Object.entries(ports).reduce((all, [from, to]) => all.replaceAll(from, to), text)
      .replaceAll("./.bailiwick", home).replaceAll(".bailiwick/", `${home}/`)
      .replaceAll(/npx -y deno@2\.9\.6 task (-q )?cli/g, `${run} src/cli/main.ts`)
      .replaceAll(/npx -y deno@2\.9\.6 run -A/g, run)
      .replaceAll(/\b(event|pat|notice)\.ndjson/g, join(folder, "$1.ndjson"))
  /** Starts these lines; none of them may fail. */
  const types = (...blocks: ReadonlyArray<string>) => {
    const module = join(folder, `${randomUUID()}.sh`)
    writeFileSync(module, `set -e -o pipefail\n${here(blocks.join("\n"))}`)
    const env = { BAILIWICK_HOME: home, PRODUCT_PORT: ports["9100"], PRODUCT_DB: join(folder, "product.db") }
    return start({ command: ["bash"], module, env, cwd: root })
  }
  /** Runs these lines to their end; gives what they print. */
  const typed = Effect.fnUntraced(function* (...blocks: ReadonlyArray<string>) {
    const program = yield* types(...blocks)
    assert.strictEqual(yield* program.exited, 0, program.output())
    assert.notInclude(program.output(), "urn:bailiwick:problem")
    return program.output()
  })
  return { ports, types, typed }
})

layer(Around.layer, { excludeTestServices: true, timeout: "2 minutes" })("the shell lines of", (it) => {
  it.effect("README.md bring a webhook, an event and a review", () =>
    Effect.gen(function* () {
      const { ports, typed, types } = yield* reader
      const [, receiver, hook, listen, event, review, ...more] = shellOf("README.md")
      assert.lengthOf(more, 0)
      const receiving = yield* types(staying(receiver!, "node -e"))
      const answers = `until curl -s -o /dev/null -X POST http://127.0.0.1:${ports["9000"]}/; do sleep 0.1; done`
      yield* typed(answers, hook!)
      yield* receiving.line(/^[0-9a-f]{64} \{.*"event":"email\.delivered"/m)
      const [key] = hook!.match(/^KEY=.*$/m)!
      const listening = yield* types(
        key,
        `export BAILIWICK_KEY=$KEY\n${staying(listen!.replace("BAILIWICK_KEY=$KEY ", ""), "npx")}`,
      )
      yield* listening.line(/listening for 127\.0\.0\.1/)
      assert.match(yield* typed(event!), /published 1, duplicates 0, failed 0/)
      yield* receiving.line(/^[0-9a-f]{64} \{.*"event":"email\.bounced"/m)
      const said = yield* typed(review!)
      assert.match(said, /"sponsor_reason":"quarterly review"/)
      assert.match(said, /"approved"/)
    }), 240_000)

  it.effect(
    "sdk/client/README.md become programs that make a webhook, send its test and read a refusal",
    () =>
      Effect.gen(function* () {
        const { home, instance } = yield* Around
        const folder = mkdtempSync(join(home, "client-"))
        const [make, test, refused] = clientSnippets()
        const { accounts } = JSON.parse(readFileSync(join(home, "demo.json"), "utf8"))
        const env = {
          BAILIWICK_URL: instance.origin(),
          BAILIWICK_KEY: accounts.bob.api_key,
          RECEIVER_URL: `http://127.0.0.1:${yield* freePort()}/`,
        }
        const runs = Effect.fnUntraced(function* (text: string) {
          const module = join(folder, `${randomUUID()}.mts`)
          const own = pathToFileURL(join(root, "sdk/client/Client.ts")).href
          writeFileSync(module, text.replace('"@bailiwick/client"', JSON.stringify(own)))
          const program = yield* start({ module, env })
          assert.strictEqual(yield* program.exited, 0, program.output())
          return program.output()
        })
        assert.match(yield* runs(make!), /^[0-9a-f-]{36} whsec_\S+$/m)
        yield* runs(test!)
        assert.match(yield* runs(refused!), /^body\.name /m)
      }),
    240_000,
  )

  it.effect("docs/identity.md lead from people to Access", () =>
    Effect.gen(function* () {
      const { typed } = yield* reader
      const said = yield* typed(...shellOf("docs/identity.md"))
      assert.match(said, /"name":"Moss"/)
      assert.match(said, /"recipient":"n[^"]*@moss\.example"/)
      assert.match(said, /"items":\[\{"item_id":/)
    }), 400_000)

  it.effect("examples/product/README.md let pat in and out", () =>
    Effect.gen(function* () {
      const { typed } = yield* reader
      const [names, grant, follow, ask, suspend, revoke, ...more] = shellOf("examples/product/README.md")
      assert.lengthOf(more, 0)
      // The product runs in another terminal: here it goes on beside the lines that follow.
      const beside = follow!.replace(
        /^(npx .*?main\.ts).*$/m,
        `$1 > $PRODUCT_DB.log 2>&1 & trap "kill $!" EXIT
until grep -q opened "$PRODUCT_DB.log"; do kill -0 $!; sleep 0.2; done`,
      )
      assert.notStrictEqual(beside, follow)
      // A reader looks again until the product has heard.
      const once = (may: boolean) => `until enter pat | grep -q '"may":${may}'; do sleep 0.2; done; enter pat`
      const heard = [
        ask!.replace("enter pat;", `${once(true)};`),
        suspend!.replace("; enter pat", `; ${once(false)}`),
        revoke!.replace("sleep 1; enter pat", once(false)),
      ]
      for (const text of heard) assert.include(text, "until enter pat")
      // An answer of Bailiwick ends without a new line.
      const entries = (yield* typed(names!, grant!, beside, ...heard)).match(/\{"may":[^{}]*\}/g)!
      assert.deepStrictEqual(entries.map((entry) => JSON.parse(entry).may), [true, false, false, false])
      assert.strictEqual(JSON.parse(entries[2]!).because, "account_disabled")
    }), 240_000)

  it.effect("docs/lifecycle.md and docs/streams.md read, acknowledge and make a stream", () =>
    Effect.gen(function* () {
      const { typed } = yield* reader
      const [names, grant] = shellOf("examples/product/README.md")
      const [follow] = shellOf("docs/lifecycle.md")
      const [stream] = shellOf("docs/streams.md")
      const service = (text: string) =>
        text.replace("fern-backend", "page-reader").replace("events.read", 'stream.manage","events.read')
      // The position before the first event.
      const given = `PUBLIC_URL=http://127.0.0.1:8080 PROJECT_ID=$(demo project.id) CURSOR=${
        btoa("1.0").replace(/=+$/, "")
      }
TOKEN=$(npx -y deno@2.9.6 task -q cli token --service page-reader --audience service-lifecycle)`
      const filled = follow!.replace('"cursor":"…"', `"cursor":"'$CURSOR'"`).replace(
        "sha256:…",
        `sha256:${"0".repeat(64)}`,
      )
      assert.notMatch(filled, /…/)
      const said = yield* typed(
        names!,
        service(grant!),
        given,
        filled,
        stream!.replace("Bearer …", "Bearer of the receiver"),
      )
      assert.match(said, /"items":\[\{"?.*"set":"ey/)
      assert.match(said, /"stream_id":"[0-9a-f-]{36}"/)
    }), 240_000)

  it.effect("docs/console.md make a link for a frame", () =>
    Effect.gen(function* () {
      const { typed } = yield* reader
      const key =
        `PUBLIC_URL=http://127.0.0.1:8080 KEY=$(node -p 'require("./.bailiwick/demo.json").accounts.alice.api_key')`
      assert.match(yield* typed(key, ...shellOf("docs/console.md")), /"url":"[^"]+\/console\/embed#mail_l_/)
    }), 240_000)

  it.effect("docs/subscribing.md print what a running program publishes", () =>
    Effect.gen(function* () {
      const { typed, types } = yield* reader
      const [, follow, notice, ...more] = shellOf("docs/subscribing.md")
      assert.lengthOf(more, 0)
      const subscriber = yield* types(staying(follow!, "npx -y deno@2.9.6 run -A examples/subscriber/main.ts"))
      yield* subscriber.line(/following NOTIFICATIONS/)
      yield* typed(notice!)
      yield* subscriber.line(/^notifications\.v1\.0199c0de-0000-7000-8000-000000000001\.alerts \{/m)
    }), 240_000)

  it.effect(
    "docs/keys.md and docs/recovery.md announce a key, list keys and make a backup",
    () =>
      Effect.gen(function* () {
        const { typed } = yield* reader
        const [keys] = shellOf("docs/keys.md")
        assert.match(yield* typed(keys!), /announced/)
        const [recovery] = shellOf("docs/recovery.md")
        const [backup] = recovery!.split("\n")
        const { home } = yield* Around
        yield* typed(backup!.replace("/backups/", `${home}/`))
      }),
    240_000,
  )
})
