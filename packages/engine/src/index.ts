// The engine's public surface.
export type { Broker, Clock, EventSink, ListQuery, NewTask, Page, Random, TakenTask } from './ports.ts'
