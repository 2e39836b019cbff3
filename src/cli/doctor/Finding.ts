/** What one look found: fine, worth a thought, or wrong; and then what to do. */
export interface Finding {
  readonly level: "ok" | "warn" | "FAIL"
  /** What was looked at, one or two words. */
  readonly what: string
  readonly says: string
}

export const ok = (what: string, says: string): Finding => ({ level: "ok", what, says })
export const warn = (what: string, says: string): Finding => ({ level: "warn", what, says })
export const fail = (what: string, says: string): Finding => ({ level: "FAIL", what, says })

export const lineOf = ({ level, says, what }: Finding): string => `${level.padEnd(4)} ${what.padEnd(13)} ${says}`
