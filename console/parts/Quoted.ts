/**
 * A text as one word of a POSIX shell. Commands that are offered for copying have parts that a link chooses, such as a
 * filter in the address: a shell must not run any of it.
 */
export const quoted = (text: string): string =>
  /^[\w@%+:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
