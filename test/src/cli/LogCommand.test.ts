/** The command `log verify`, over a folder of a log's files. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { generateKeyPairSync } from "node:crypto"
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { signedCheckpoint, verifierKey } from "../../../services/transparency/LogCheckpoint.ts"
import { rootOf } from "../../services/transparency/NaiveTree.ts"
import * as Processes from "../../support/Processes.ts"
import { slow, type } from "./Terminal.ts"

const origin = "log.example.org/log"
const privateKey = generateKeyPairSync("ed25519").privateKey
const key = verifierKey(origin, privateKey)
const entries = Array.from({ length: 300 }, (_, n) => Buffer.from(`entry ${n}`))

const put = (folder: string, path: string, bytes: Uint8Array | string) => {
  mkdirSync(dirname(join(folder, path)), { recursive: true })
  writeFileSync(join(folder, path), bytes)
}

const bundle = (some: ReadonlyArray<Uint8Array>) =>
  Buffer.concat(some.flatMap((entry) => [Buffer.of(0, entry.length), entry]))

/** Puts the files of a log into a folder. */
const put300 = (folder: string, all: ReadonlyArray<Uint8Array>) => {
  put(folder, "checkpoint", signedCheckpoint({ origin, size: all.length, root: rootOf(all) }, privateKey))
  put(folder, "tile/entries/000", bundle(all.slice(0, 256)))
  put(folder, `tile/entries/001.p/${all.length - 256}`, bundle(all.slice(256)))
}

it.live("verifies a log, remembers its head, and refuses one that does not continue it", () =>
  Effect.gen(function* () {
    const home = yield* Processes.home
    const [folder, file] = [join(home, "log"), join(home, "head")]
    const verify = (...more: ReadonlyArray<string>) =>
      type(home, {}, ["log", "verify", folder, "--key", key, "--remember", file, ...more])
    put300(folder, entries.slice(0, 290))
    const first = yield* verify()
    assert.deepStrictEqual([first.stdout, first.code], [`${origin}: 290 entries, 0 witnesses\n`, 0], first.stderr)
    put300(folder, entries)
    const second = yield* verify()
    assert.strictEqual(second.stdout, `${origin}: 300 entries, 0 witnesses, continues the 290 of before\n`)
    const root = Buffer.from(rootOf(entries)).toString("base64")
    const shown = JSON.parse((yield* verify("--json")).stdout)
    assert.deepStrictEqual(shown, { origin, size: 300, root, witnesses: [], before: 300 })
    const head = readFileSync(file, "utf8")
    assert.strictEqual(head, `${origin}\n300 ${root}\n`)

    put300(folder, entries.with(5, Buffer.from("another")))
    const forked = yield* verify()
    assert.strictEqual(forked.code, 1)
    assert.include(forked.stderr, "the log is refused: consistency: the first 300 entries are not those")
    assert.strictEqual(readFileSync(file, "utf8"), head)
    writeFileSync(file, head.replace(origin, "other.example.org/log"))
    assert.include((yield* verify()).stderr, "has a head of another log: other.example.org/log")
    writeFileSync(file, head)
    assert.deepStrictEqual(readdirSync(home).filter((name) => name.startsWith("head")), ["head"])
    const alone = yield* verify("--quorum", "1")
    assert.include(alone.stderr, "the log is refused: witnesses: 0 of 1")
  }).pipe(Effect.scoped), slow)
