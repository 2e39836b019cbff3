import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { mustBeFree, outputTo } from "../../../../src/cli/backup/Output.ts"
import { home } from "../../../support/Processes.ts"

const write = Effect.fnUntraced(function* (file: string, text: string, force: boolean, meanwhile = () => {}) {
  const { finish, write } = yield* outputTo(file, { force })
  return yield* Effect.promise(async () => {
    await write(new TextEncoder().encode(text))
    meanwhile()
    return await finish().then(() => "done", (error: Error) => error.message)
  })
}, Effect.scoped)

it.live("a backup replaces no other file, unless told to, nor one that appeared meanwhile", () =>
  Effect.gen(function* () {
    const folder = yield* home
    const file = join(folder, "backup")
    const taken = (name: string) => `${name} exists already: name another file, or add --force`
    yield* mustBeFree(file)
    assert.strictEqual(yield* write(file, "first", false), "done")
    assert.deepStrictEqual([readFileSync(file, "utf8"), statSync(file).mode & 0o777], ["first", 0o600])
    assert.strictEqual((yield* Effect.flip(mustBeFree(file))).message, taken(file))
    assert.strictEqual(yield* write(file, "second", false), taken(file))
    assert.strictEqual(readFileSync(file, "utf8"), "first")
    assert.strictEqual(yield* write(file, "third", true), "done")
    assert.strictEqual(readFileSync(file, "utf8"), "third")
    const late = join(folder, "late")
    assert.strictEqual(yield* write(late, "fourth", false, () => writeFileSync(late, "somebody's")), taken(late))
    assert.strictEqual(readFileSync(late, "utf8"), "somebody's")
    assert.sameMembers(readdirSync(folder).filter((name) => /backup|late/.test(name)), ["backup", "late"])
    yield* mustBeFree("-")
    for (const [name, why] of [[folder, "it is a folder"], ["", "name a file"]] as const) {
      const { message } = yield* Effect.flip(outputTo(name, { force: true }))
      assert.strictEqual(message, `cannot write ${name}: ${why}`)
    }
  }))
