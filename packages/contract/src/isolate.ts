// For Bullpen's code inside threads and child processes, each of which would otherwise load the schemas of the whole HTTP API when
// it starts. These exports may change in any version.

export { handlerIn } from './definition/handler.ts'
export { handlerLog } from './definition/log.ts'
export { keyProblem } from './definition/texts.ts'
export { declareFailure } from './errors/failure.ts'
export { refusePrototypeKeys } from './errors/prototype-keys.ts'
export { RateLimited } from './errors/rate-limited.ts'
