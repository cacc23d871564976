export { default } from '../welcome.ts'
