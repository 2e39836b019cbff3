/** What the program writes, as the kit verifies it: notes, checkpoints with cosignatures, proofs; and what is refused. */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { createHash, createPrivateKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto"
import { Refusal } from "../../sdk/Refusal.ts"
import { noteKey, openNote } from "../../sdk/SignedNote.ts"
import { type LogPolicy, verifyCheckpoint, verifyConsistency, verifyInclusion } from "../../sdk/TransparencyLog.ts"
import { inclusionNote } from "../../services/transparency/InclusionNote.ts"
import { signedCheckpoint, signedNote, verifierKey } from "../../services/transparency/LogCheckpoint.ts"
import { pathOf, proofOf, rootOf } from "../services/transparency/NaiveTree.ts"

/** The key and the note that golang.org/x/mod/sumdb/note publishes in its tests (BSD-3-Clause). */
const peter = {
  seed: "gQoUAtUUbI2E8kQzMPVAgOv5juF9nHT2JS/F1ccoMXM=",
  key: "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
  text: "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n",
  line: "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n",
}
const enoch = {
  key: "EnochRoot+af0cfe78+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop",
  line: "— EnochRoot rwz+eBzmZa0SO3NbfRGzPCpDckykFXSdeX+MNtCOXm2/5n2tiOHp+vAF1aGrQ5ovTG01oOTGwnWLox33WWd1RvMc+QQ=\n",
}

const stepOf = (refused: () => unknown): string => {
  try {
    refused()
  } catch (error) {
    return error instanceof Refusal ? error.step : String(error)
  }
  return "verified"
}

const newKey = () => generateKeyPairSync("ed25519").privateKey

/** A witness by C2SP tlog-cosignature, written here from its text. */
const witness = (name: string) => {
  const privateKey = newKey()
  const x = Buffer.from(String(privateKey.export({ format: "jwk" }).x), "base64url")
  const material = Buffer.concat([Buffer.of(4), x])
  const id = createHash("sha256").update(`${name}\n`).update(material).digest().subarray(0, 4)
  const cosigned = (checkpoint: string, seconds: number) => {
    const text = checkpoint.slice(0, checkpoint.lastIndexOf("\n\n") + 1)
    const time = Buffer.alloc(8)
    time.writeBigUInt64BE(BigInt(seconds))
    const signature = sign(null, Buffer.from(`cosignature/v1\ntime ${seconds}\n${text}`), privateKey)
    return `${checkpoint}— ${name} ${Buffer.concat([id, time, signature]).toString("base64")}\n`
  }
  return { key: `${name}+${id.toString("hex")}+${material.toString("base64")}`, cosigned }
}

const origin = "log.example.org/decisions"
const entries = Array.from({ length: 40 }, (_, n) => Buffer.from(`decision ${n}`))
const logKey = newKey()
const policy: LogPolicy = { origin, logKeys: [verifierKey(origin, logKey)] }
const checkpointOf = (size: number, key: KeyObject = logKey, named = origin) =>
  signedCheckpoint({ origin: named, size, root: rootOf(entries.slice(0, size)) }, key)
const proofIn = (index: number, size: number, checkpoint = checkpointOf(size)) =>
  inclusionNote({ index, proof: pathOf(index, entries.slice(0, size)), checkpoint })

describe("TransparencyLog", () => {
  it("makes and opens the published note of another implementation, byte for byte", () => {
    const der = Buffer.concat([
      Buffer.from("302e020100300506032b657004220420", "hex"),
      Buffer.from(peter.seed, "base64"),
    ])
    const privateKey = createPrivateKey({ key: der, format: "der", type: "pkcs8" })
    assert.strictEqual(signedNote(peter.text, "PeterNeumann", privateKey), `${peter.text}\n${peter.line}`)
    assert.strictEqual(verifierKey("PeterNeumann", privateKey), peter.key)
    const keys = [noteKey(peter.key), noteKey(enoch.key)]
    const { signers, text } = openNote(`${peter.text}\n${peter.line}${enoch.line}${peter.line}`, keys)
    assert.deepStrictEqual([text, signers.map(({ key }) => key.name)], [peter.text, ["PeterNeumann", "EnochRoot"]])
    assert.deepStrictEqual(openNote(`${peter.text}\n${peter.line}${enoch.line}`, keys.slice(1)).signers.length, 1)
  })

  it("no other spelling of a key is a key", () => {
    for (let from = 0; from < peter.key.length; from++) {
      for (let to = from + 1; to <= peter.key.length; to++) {
        if (to - from === peter.key.length) continue
        assert.strictEqual(stepOf(() => noteKey(peter.key.slice(from, to))), "key")
      }
      const next = String.fromCharCode(peter.key.charCodeAt(from) + 1)
      assert.strictEqual(stepOf(() => noteKey(peter.key.slice(0, from) + next + peter.key.slice(from + 1))), "key")
    }
    // Of the wrong length and of an unknown type, under ids of their own.
    for (
      const material of [
        "ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TWBADKEY==",
        "ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
      ]
    ) {
      const id = createHash("sha256").update("PeterNeumann\n").update(Buffer.from(material, "base64")).digest("hex")
      assert.strictEqual(stepOf(() => noteKey(`PeterNeumann+${id.slice(0, 8)}+${material}`)), "key")
    }
  })

  it("malformed notes are refused by name, also those that a trusted key signed elsewhere", () => {
    const keys = [noteKey(peter.key)]
    const { line, text } = peter
    const refused: ReadonlyArray<readonly [string, string]> = [
      ["note", text],
      ["note", `${text}\n`],
      ["note", `${text}\n${line.slice(0, -1)}`],
      ["note", `\u0001${text}\n${line}`],
      ["note", `${text.replace("\n", "\r\n")}\n${line}`],
      ["note", `\ud800${text}\n${line}`],
      ["note", `${text}\n${line.replace("PeterNeumann", "Bad Name")}`],
      ["note", `${text}\n${line}Unexpected line.\n`],
      ["note", `${text}\n${line.replace("nAM=", "nAN=")}`],
      ["size", `${text}\n${line.repeat(101)}`],
      ["size", `${text.repeat(1_000)}\n${line}`],
      ["signature", `${text.replace("answer", "Answer")}\n${line}`],
      ["signature", `${text}\n${line.replace("ZJku", "ZJkv")}`],
      ["kid", `${text}\n${enoch.line}`],
      ["kid", `${text}\n${line.replace("PeterNeumann", "CarmenSandiego")}`],
      ["kid", `${text}\n${line.replace("x08g", "xxxx")}`],
    ]
    assert.deepStrictEqual(refused.map(([, note]) => stepOf(() => openNote(note, keys))), refused.map(([step]) => step))
  })

  it("a checkpoint is the log's own, and a quorum counts witnesses that saw this tree", () => {
    const [first, second, stranger] = [witness("one.example"), witness("two.example"), witness("three.example")]
    const plain = checkpointOf(7)
    const cosigned = first.cosigned(plain, 1_679_315_147)
    const asked: LogPolicy = { ...policy, witnessKeys: [first.key, second.key], quorum: 1 }
    assert.deepStrictEqual(verifyCheckpoint(plain, policy).witnesses, [])
    const head = verifyCheckpoint(stranger.cosigned(cosigned, 5), asked)
    assert.deepStrictEqual(head.witnesses, [{ name: "one.example", at: 1_679_315_147 }])
    assert.deepStrictEqual([head.size, Buffer.from(head.root)], [7, Buffer.from(rootOf(entries.slice(0, 7)))])
    const cosignature = (checkpoint: string) => checkpoint.trimEnd().split("\n").at(-1)!
    const moved = `${checkpointOf(8)}${cosignature(cosigned)}\n`
    const refused: ReadonlyArray<readonly [string, () => unknown]> = [
      ["witnesses", () => verifyCheckpoint(plain, asked)],
      ["witnesses", () => verifyCheckpoint(`${cosigned}${cosignature(cosigned)}\n`, { ...asked, quorum: 2 })],
      ["signature", () => verifyCheckpoint(moved, asked)],
      ["kid", () => verifyCheckpoint(checkpointOf(7, newKey()), policy)],
      ["kid", () => verifyCheckpoint(first.cosigned(checkpointOf(7, newKey()), 5), asked)],
      ["kid", () => verifyCheckpoint(cosigned, { origin, logKeys: [first.key] })],
      ["origin", () => verifyCheckpoint(signedNote(`other.example\n0\n${"A".repeat(43)}=\n`, origin, logKey), policy)],
      ...[
        `${origin}\n`,
        `${origin}\n07\n${"A".repeat(43)}=\n`,
        `${origin}\n7\nAAAA\n`,
        `${origin}\n-1\n${"A".repeat(43)}=\n`,
      ]
        .map((text) => ["note", () => verifyCheckpoint(signedNote(text, origin, logKey), policy)] as const),
    ]
    assert.deepStrictEqual(refused.map(([, refuse]) => stepOf(refuse)), refused.map(([step]) => step))
  })

  it("an entry's proof is verified offline; of another entry, index or tree it is refused", () => {
    for (const size of [1, 2, 7, 8, 40]) {
      for (const [index, entry] of entries.slice(0, size).entries()) {
        const { head, index: found } = verifyInclusion(proofIn(index, size), entry, policy)
        assert.deepStrictEqual([found, head.size], [index, size])
      }
    }
    const right = proofIn(3, 7)
    assert.strictEqual(verifyInclusion(right.replace("\nindex", "\nextra AAAA\nindex"), entries[3]!, policy).index, 3)
    const refused: ReadonlyArray<readonly [string, string]> = [
      ["inclusion", right.replace("index 3", "index 4")],
      ["inclusion", proofIn(4, 7)],
      ["inclusion", inclusionNote({ index: 3, proof: [], checkpoint: checkpointOf(7) })],
      ["kid", proofIn(3, 7, checkpointOf(7, newKey()))],
      ["note", right.replace("@v1", "@v2")],
      ["note", right.replace("index 3", "index 03")],
      ["note", right.replace("index 3", "index 3\nAAAA")],
      ["note", right.replace("\nindex", "\nextra A\nindex")],
      ["note", ""],
      ["note", right.slice(0, right.indexOf("\n\n"))],
      ["size", right + "x".repeat(200_000)],
    ]
    assert.deepStrictEqual(
      refused.map(([, proof]) => stepOf(() => verifyInclusion(proof, entries[3]!, policy))),
      refused.map(([step]) => step),
    )
  })

  it("no text makes the verifier fail otherwise than by a refusal", () => {
    const right = proofIn(3, 7)
    const cut = fc.tuple(fc.nat(right.length), fc.nat(right.length), fc.string())
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), cut.map(([a, b, text]) => right.slice(0, a) + text + right.slice(b))),
        (proof) => {
          fc.pre(proof !== right)
          assert.match(
            stepOf(() => verifyInclusion(proof, entries[3]!, policy)),
            /^(note|kid|signature|size|inclusion)$/,
          )
        },
      ),
    )
  })

  it("a later checkpoint continues an earlier one, or the log forked", () => {
    const [before, after] = [verifyCheckpoint(checkpointOf(7), policy), verifyCheckpoint(checkpointOf(40), policy)]
    verifyConsistency(before, after, proofOf(7, entries))
    const forked = [...entries.slice(0, 3), Buffer.from("another"), ...entries.slice(4)]
    const fork = signedCheckpoint({ origin, size: 40, root: rootOf(forked) }, logKey)
    const shown = () => verifyConsistency(before, verifyCheckpoint(fork, policy), proofOf(7, forked))
    assert.strictEqual(stepOf(shown), "consistency")
    assert.strictEqual(stepOf(() => verifyConsistency(after, before, proofOf(7, entries))), "consistency")
  })
})
