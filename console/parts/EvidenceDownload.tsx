/** Keeps a pack of evidence in a file: its parts are asked for one after the other. */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import { LongDownload } from "./LongDownload.tsx"
import { saveFile } from "./SaveFile.ts"

interface Asked {
  readonly institution_id: string
  readonly person_id?: string
  readonly review_id?: string
}

/** All parts as one text; `tell` hears how many there are so far. */
const collected = async ({ institution_id, ...scope }: Asked, signal: AbortSignal, tell: (n: number) => void) => {
  const parts: Array<string> = []
  let after: string | undefined
  do {
    const query = after === undefined ? scope : { ...scope, after }
    const part = await ask("getEvidencePack", { params: { institution_id }, query }, { signal })
    parts.push(part)
    tell(parts.length)
    after = JSON.parse(part.trimEnd().split("\n").at(-1)!).next ?? undefined
  } while (after !== undefined)
  return parts.join("")
}

export const EvidenceDownload = ({ asked, label, name }: {
  readonly asked: Asked
  readonly label: string
  /** The file's name, without its ending. */
  readonly name: string
}): JSX.Element => (
  <LongDownload
    label={label}
    of="parts"
    gather={async (signal, tell) => {
      const text = await collected(asked, signal, tell)
      return () => {
        saveFile(`${name}.ndjson`, "application/x-ndjson", text)
        return "The file has the whole pack, signed."
      }
    }}
  />
)
