// For Bullpen's own packages. These exports may change in any version.

export { watchBuiltIns } from './built-ins/built-ins.ts'
export { processFit } from './fits-process.ts'
export { type IsolatorOptions, openIsolator, type PreparingIsolator } from './open-isolator.ts'
