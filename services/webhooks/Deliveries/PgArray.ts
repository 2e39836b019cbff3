/**
 * An SQL array as one text parameter. The client infers a type for each element of a JavaScript array, and allocates for
 * it; a scalar string is bound untyped and written in one go, which is what hundreds of ids a statement want. Elements
 * are never quoted: ids, numbers and known words only, never text that came from outside.
 */
export const arrayOf = (elements: ReadonlyArray<string | number | bigint | boolean>): string =>
  `{${elements.join(",")}}`
