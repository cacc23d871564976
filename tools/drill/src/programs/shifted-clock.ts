// Loaded before a worker process under drill: from then on its wall clock is off by as much as the environment says.
const { BULLPEN_DRILL_CLOCK_OFF_MS: offMs } = process.env

const RealDate = Date
const now = (): number => RealDate.now() + Number(offMs)

globalThis.Date = new Proxy(RealDate, {
  get: (date, name) => (name === 'now' ? now : Reflect.get(date, name)),
  // `Date()` is text, and `new Date()` the time; one that is given stays what it is.
  apply: () => new RealDate(now()).toString(),
  construct: (date, given, made) => Reflect.construct(date, given.length === 0 ? [now()] : given, made),
})
