// This module is preloaded into a worker of a drill. It shifts the wall clock by the number of milliseconds in the environment.
const { BULLPEN_DRILL_CLOCK_OFF_MS: offMs } = process.env

const RealDate = Date
const now = (): number => RealDate.now() + Number(offMs)

globalThis.Date = new Proxy(RealDate, {
  get: (date, name) => (name === 'now' ? now : Reflect.get(date, name)),
  // `Date()` returns a string, and `new Date()` returns the current time. `new Date(value)` is not changed.
  apply: () => new RealDate(now()).toString(),
  construct: (date, given, made) => Reflect.construct(date, given.length === 0 ? [now()] : given, made),
})
