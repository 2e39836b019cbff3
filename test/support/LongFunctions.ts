/** Functions that are too long to be read at once. */
import { parseAst } from "vitest/node"

const most = 70

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [member: string]: unknown
}

const isNode = (value: unknown): value is Node => typeof value === "object" && value !== null && "type" in value

const isFunction = ({ type }: Node) => type.includes("Function")

const nameOf = (value: unknown): string | undefined =>
  isNode(value) && typeof value["name"] === "string" ? value["name"] : undefined

const partsOf = (value: unknown): ReadonlyArray<Node> => {
  if (Array.isArray(value)) return value.flatMap(partsOf)
  return isNode(value) ? [value] : []
}

const within = (node: Node): ReadonlyArray<Node> => Object.values(node).flatMap(partsOf)

const holdsFunction = (node: Node): boolean => isFunction(node) || within(node).some(holdsFunction)

/** `const name = … => …`, also where a call is around it: `Effect.fn("name")(function* () { … })`. */
const isNamedFunction = (node: Node): boolean =>
  node.type === "FunctionDeclaration" ||
  node.type === "VariableDeclarator" && isNode(node["init"]) &&
    /Function|^CallExpression$/.test(node["init"].type) && holdsFunction(node["init"])

/**
 * The names of functions of more than 70 lines; one without a name has the name of what holds it. The lines of
 * functions that have a name within it are counted for those alone.
 */
export const longFunctions = (text: string): ReadonlyArray<string> => {
  if (text.split("\n").length <= most) return []
  const lines = ({ end, start }: Node) => text.slice(start, end).split("\n").length
  const ofNamed = (node: Node): number =>
    within(node).reduce((sum, part) => sum + (isNamedFunction(part) ? lines(part) : ofNamed(part)), 0)
  const look = (node: Node, holder: string): ReadonlyArray<string> => {
    const name = nameOf(node["id"]) ?? nameOf(node["key"]) ?? holder
    const long = isFunction(node) && lines(node) > most && lines(node) - ofNamed(node) > most
    return [...(long ? [name] : []), ...within(node).flatMap((part) => look(part, name))]
  }
  return partsOf(parseAst(text, { lang: "ts" }).body).flatMap((node) => look(node, ""))
}
