/** When `cli upgrade finish`, or a new log key, closed the schema to older programs: some had work in hand then. */
const statements: ReadonlyArray<string> = [
  `alter table schema_meta add column closed_at timestamptz`,
]

export default statements
