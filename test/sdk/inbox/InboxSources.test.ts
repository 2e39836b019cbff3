/** What `<bailiwick-inbox>` weighs, and what its sources keep to. */
import { assert, describe, it } from "@effect/vitest"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { english } from "../../../sdk/inbox/InboxWords.ts"
import { Category, Channel, Severity } from "../../../schemas/mail/Notification.ts"
import { inboxFolder, inboxScript } from "../../support/InboxPackage.ts"

const sources = readdirSync(inboxFolder).filter((name) => name.endsWith(".ts"))
  .map((name) => readFileSync(join(inboxFolder, name), "utf8"))

describe("<bailiwick-inbox>", () => {
  it("weighs at most 10 kB, and is one file that could stand in a page", async () => {
    const script = await inboxScript()
    assert.isAtMost(gzipSync(script, { level: 9 }).length, 10_000)
    const text = new TextDecoder().decode(script)
    assert.notMatch(text, /<\/script|<!--|\bimport\b/)
    // Of the client it has what it uses.
    assert.notMatch(text, /webhook-signature|whsec_/)
  })

  it("makes no markup of text and no style of attributes", () => {
    assert.isAbove(sources.length, 5)
    const code = sources.join("\n").replace(/\/\*[\s\S]*?\*\//g, "")
    assert.notMatch(
      code,
      /innerHTML|outerHTML|insertAdjacentHTML|createContextualFragment|setHTML|\beval\b|new Function/,
    )
    assert.notMatch(code, /<style|"style"|\bstyle: "/)
  })

  it("has a word for each category, channel and severity, and names each custom property and part", () => {
    assert.deepStrictEqual(Object.keys(english.categories), [...Category.literals])
    assert.deepStrictEqual(Object.keys(english.channels), [...Channel.literals])
    assert.deepStrictEqual(Object.keys(english.severities), [...Severity.literals])
    const readme = readFileSync(join(inboxFolder, "README.md"), "utf8")
    const [, properties] = /Custom properties: `--bailiwick-` with ([^.]+)\./.exec(readme)!
    const [, parts] = /Parts: ([^.]+)\./.exec(readme)!
    const named = (text: string) => new Set([...text.matchAll(/`([a-z-]+)`/g)].map(([, name]) => name!))
    const used = new Set([...sources.join("\n").matchAll(/var\(--bailiwick-([a-z-]+)/g)].map(([, name]) => name!))
    assert.deepStrictEqual(named(properties!), used)
    const made = [...sources.join("\n").matchAll(/\b(?:element\(\s*"[a-z0-9]+",|button\()\s*"([a-z -]+)"/g)]
      .flatMap(([, name]) => name!.split(" "))
    // `refused` is the second name of a notice, `said` what only screen readers have.
    for (const name of new Set(made)) assert.isTrue(named(parts!).has(name) || /^(refused|said)$/.test(name), name)
    for (const name of named(parts!)) assert.isTrue(made.includes(name) || name === "unread", name)
  })
})
