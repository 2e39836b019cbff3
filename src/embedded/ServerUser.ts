/** A user of the system whose rights a server has. */
export interface ServerUser {
  readonly uid: number
  readonly gid: number
}
