/** Subject patterns of NATS: `*` stands for one token, a `>` at the end for one or more. */
const token = /^[A-Za-z0-9_~-]{1,128}$/

/** Whether this can be subscribed to. */
export const isPattern = (text: string): boolean => {
  const tokens = text.split(".")
  return text.length <= 1024 &&
    tokens.every((part, i) => part === "*" || (part === ">" && i === tokens.length - 1) || token.test(part))
}

/** Whether `subject`, which has no wildcard, is one of `pattern`'s. */
export const covers = (pattern: string, subject: string): boolean => {
  const wanted = pattern.split(".")
  const given = subject.split(".")
  if (wanted.at(-1) === ">") return given.length >= wanted.length && wanted.slice(0, -1).every(matches(given))
  return given.length === wanted.length && wanted.every(matches(given))
}

const matches = (given: ReadonlyArray<string>) => (part: string, i: number) => part === "*" || part === given[i]
