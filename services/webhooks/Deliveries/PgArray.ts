/**
 * An SQL array as one text parameter. For a JavaScript array the client infers a type and allocates per element; a
 * string is bound untyped and written at once, which is faster for hundreds of ids per statement. Elements are not
 * quoted: pass only ids, numbers and known words, never text from outside.
 */
export const arrayOf = (elements: ReadonlyArray<string | number | bigint | boolean>): string =>
  `{${elements.join(",")}}`
