/** Auditors: people who read decisions and change nothing. The directory says who is one. */
const statements: ReadonlyArray<string> = [
  `alter table people add column auditor boolean not null default false`,
]

export default statements
