/** Gives generated responses to each HTTP parser, and collects the differences. */
import { kindOf, nameOf } from "./Disagreements.ts"
import { type Script, scriptsOf } from "./GeneratedAnswers.ts"
import { nodeHttp, ours, undici, type Verdict } from "./Oracles.ts"
import { answerOf } from "./ReferenceReader.ts"

export interface Compared {
  /** How often each named difference was seen, by `reader: kind, name`. */
  readonly named: ReadonlyMap<string, number>
  /** Differences without a name, and results that differ from the RFC's. */
  readonly faults: ReadonlyArray<string>
  /** Responses that our parser accepted. */
  readonly accepted: number
}

const atOnce = 100

/** Whether our result, whatever the cuts, is the RFC's result for the whole text. */
const isReference = ({ ending, text }: Script, { body, error, kept, status }: Verdict): boolean => {
  const answer = answerOf(text, ending === "ends")
  if (answer === null || error !== null) return answer === null && error !== null
  return answer.status === status && answer.body === body && (answer.kept && ending === "keeps") === kept
}

export const compare = async (count: number, seed: number): Promise<Compared> => {
  const next = scriptsOf(seed)
  const named = new Map<string, number>()
  const faults: Array<string> = []
  let accepted = 0
  const one = async () => {
    const script = next()
    const report = (what: string, ...verdicts: ReadonlyArray<Verdict>) =>
      void faults.push(`${what}: ${JSON.stringify({ ...script, parts: script.parts.length, verdicts })}`)
    const own = await ours(script)
    if (own.error === null) accepted++
    if (!isReference(script, own)) report("not the RFC's result", own)
    for (const [reader, read] of [["undici", undici], ["node:http", nodeHttp]] as const) {
      const other = await read(script)
      const kind = kindOf(own, other)
      if (kind === null) continue
      const name = nameOf(kind, script)
      // In a response with changed bytes our parser may be stricter: the RFC's result was checked above.
      if (name === undefined && script.mutated && (kind === "strict" || kind === "closed")) continue
      if (name === undefined) report(`${reader}: ${kind}`, own, other)
      else named.set(`${reader}: ${kind}, ${name}`, (named.get(`${reader}: ${kind}, ${name}`) ?? 0) + 1)
    }
  }
  for (let at = 0; at < count; at += atOnce) await Promise.all(Array.from({ length: atOnce }, one))
  return { named, faults, accepted }
}
