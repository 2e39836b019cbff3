/** Media types of requests and answers (RFC 9110, 8.3 and 12.5.1). */

/** The type of a Content-Type header without its parameters; no header means JSON, as in FastAPI. */
export const mediaTypeOf = (header: string | undefined): string =>
  (header ?? "application/json").split(";", 1)[0]!.trim().toLowerCase()

const ranges = (header: string) =>
  header.split(",").flatMap((part) => {
    const [range, ...parameters] = part.split(";").map((piece) => piece.trim().toLowerCase())
    const weight = parameters.find((parameter) => parameter.startsWith("q="))
    return range ? [{ range, excluded: weight !== undefined && Number(weight.slice(2)) === 0 }] : []
  })

const covers = (range: string, type: string) =>
  range === "*/*" || range === type || range.endsWith("/*") && type.startsWith(range.slice(0, -1))

const precision = (range: string) => range === "*/*" ? 0 : range.endsWith("/*") ? 1 : 2

/**
 * Whether an Accept header admits one of the types of `given`. An absent or empty header admits all; an empty `given`
 * is always admitted.
 */
export const accepts = (header: string | undefined, given: ReadonlySet<string>): boolean => {
  if (given.size === 0 || header === undefined || header.trim() === "") return true
  const wanted = ranges(header)
  return [...given].some((type) => {
    const [best] = wanted.filter(({ range }) => covers(range, type.split(";", 1)[0]!))
      .sort((a, b) => precision(b.range) - precision(a.range))
    return best !== undefined && !best.excluded
  })
}
