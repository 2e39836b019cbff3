/** The result of a check: fine, a warning, or a failure; with what to do. */

export interface Note {
  /** The finding in words. */
  readonly says: string
  /** The remedy, if there is one. */
  readonly remedy: string | null
}

export interface Finding {
  readonly level: "ok" | "warn" | "FAIL"
  /** The subject of the check, in one or two words. */
  readonly what: string
  readonly notes: ReadonlyArray<Note>
}

export const note = (says: string, remedy: string | null = null): Note => ({ says, remedy })

const one = (level: Finding["level"]) => (what: string, says: string, remedy: string | null = null): Finding => ({
  level,
  what,
  notes: [{ says, remedy }],
})

export const ok = one("ok")
export const warn = one("warn")
export const fail = one("FAIL")

export const noteText = ({ remedy, says }: Note): string => remedy === null ? says : `${says}: ${remedy}`

/** A finding and its remedy on one line. */
export const textOf = ({ notes }: Finding): string => notes.map(noteText).join("; ")

export const lineOf = (finding: Finding): string =>
  `${finding.level.padEnd(4)} ${finding.what.padEnd(13)} ${textOf(finding)}`
