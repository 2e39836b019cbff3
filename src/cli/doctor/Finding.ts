/** The result of a check: fine, a warning, or a failure; with what to do. */
export interface Finding {
  readonly level: "ok" | "warn" | "FAIL"
  /** The subject of the check, in one or two words. */
  readonly what: string
  readonly says: string
}

export const ok = (what: string, says: string): Finding => ({ level: "ok", what, says })
export const warn = (what: string, says: string): Finding => ({ level: "warn", what, says })
export const fail = (what: string, says: string): Finding => ({ level: "FAIL", what, says })

export const lineOf = ({ level, says, what }: Finding): string => `${level.padEnd(4)} ${what.padEnd(13)} ${says}`
