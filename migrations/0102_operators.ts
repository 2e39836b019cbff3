/** Operators are few among all people, and are looked for whenever a review waits for one of them. */
const statements: ReadonlyArray<string> = [
  `create index concurrently if not exists people_operators on people (id) where operator and not removed`,
]
export default statements
