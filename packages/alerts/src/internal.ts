/** For packages of this repository; it can change in any version. */
export { isEmailAddress } from './channels/email.ts'
export { runbookOf } from './notice.ts'
