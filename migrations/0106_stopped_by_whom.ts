/** Whether a request was ended by its own author: the state alone does not tell that from a decision of others. */
const statements: ReadonlyArray<string> = [
  `alter table requests add column withdrawn boolean not null default false`,
]

export default statements
