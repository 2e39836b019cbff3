/** Gives generated answers to every reader, and collects the differences. */
import { kindOf, nameOf } from "./Disagreements.ts"
import { type Script, scriptsOf } from "./GeneratedAnswers.ts"
import { nodeHttp, ours, undici, type Verdict } from "./Oracles.ts"
import { answerOf } from "./ReferenceReader.ts"

export interface Compared {
  /** How often each named difference was seen, by `reader: kind, name`. */
  readonly named: ReadonlyMap<string, number>
  /** Differences without a name, and answers that the RFC reads otherwise. */
  readonly faults: ReadonlyArray<string>
  /** Answers that our reader accepted. */
  readonly taken: number
}

const atOnce = 100

/** Whether our result is the RFC's for the whole text, at every cut. */
const isReference = ({ ending, text }: Script, { body, error, kept, status }: Verdict): boolean => {
  const answer = answerOf(text, ending === "ends")
  if (answer === null || error !== null) return answer === null && error !== null
  return answer.status === status && answer.body === body && (answer.kept && ending === "keeps") === kept
}

export const compare = async (count: number, seed: number): Promise<Compared> => {
  const next = scriptsOf(seed)
  const named = new Map<string, number>()
  const faults: Array<string> = []
  let taken = 0
  const one = async () => {
    const script = next()
    const told = (what: string, ...verdicts: ReadonlyArray<Verdict>) =>
      void faults.push(`${what}: ${JSON.stringify({ ...script, parts: script.parts.length, verdicts })}`)
    const own = await ours(script)
    if (own.error === null) taken++
    if (!isReference(script, own)) told("not the RFC's reading", own)
    for (const [reader, read] of [["undici", undici], ["node:http", nodeHttp]] as const) {
      const other = await read(script)
      const kind = kindOf(own, other)
      if (kind === null) continue
      const name = nameOf(kind, script)
      // With a changed byte, being stricter than others is the RFC's reading, checked above.
      if (name === undefined && script.spoilt && (kind === "strict" || kind === "closed")) continue
      if (name === undefined) told(`${reader}: ${kind}`, own, other)
      else named.set(`${reader}: ${kind}, ${name}`, (named.get(`${reader}: ${kind}, ${name}`) ?? 0) + 1)
    }
  }
  for (let at = 0; at < count; at += atOnce) await Promise.all(Array.from({ length: atOnce }, one))
  return { named, faults, taken }
}
