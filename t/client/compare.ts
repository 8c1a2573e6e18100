// SPDX-License-Identifier: Apache-2.0
// compare.ts: compiles if a client of the version "old" can use "new" (contract
// 13.7): new answers fit where old ones do, and what was sent may still be sent
import type { components as OldParts, paths as OldPaths,
    webhooks as OldHooks } from "./old.js";
import type { components as NewParts, paths as NewPaths,
    webhooks as NewHooks } from "./new.js";

type Method = "get" | "post" | "patch" | "delete";
type Success = 200 | 201 | 202 | 204;

// The members of T; none if it may be left out and is not there.
type Names<T> = [NonNullable<T>] extends [never] ? never
    : keyof NonNullable<T>;

// What the operation O accepts.
type Accepted<O> = O extends { parameters: infer P; requestBody?: infer B }
    ? { parameters: P; body: B } : never;

// The names of its parameters, and of the members of its body.
type Named<O> = O extends {
    parameters: { query?: infer Q; header?: infer H }; requestBody?: infer B;
} ? Names<Q> | Names<H> | (NonNullable<B> extends {
    content: { "application/json": infer J } } ? Names<J> : never) : never;

// What O answers if all is well.
type Answered<O> = O extends { responses: infer R } ? {
    [S in keyof R & Success]: R[S] extends { content?: infer C } ? C : never;
} : never;

// The type T with the events of the old version for those of the new one, where
// they fit. A client ignores types of events that it does not know.
type OldEvent = OldParts["schemas"]["Event"];
type NewEvent = NewParts["schemas"]["Event"];
type Known = [Extract<NewEvent, { type: OldEvent["type"] }>] extends [OldEvent]
    ? OldEvent : unknown;
type Old<T> = [T] extends [NewEvent] ? [NewEvent] extends [T] ? Known : T
    : T extends object ? { [K in keyof T]: Old<T[K]> } : T;

// What O, a webhook, sends.
type Sent<O> = O extends { requestBody: { content: infer C } } ? C : never;

// The methods that the path P has.
type Methods<P> = {
    [M in keyof P & Method]: P[M] extends undefined ? never : M;
}[keyof P & Method];

// The member NAME of T; unknown if there is none.
type Find<T, Name> = Name extends keyof T ? T[Name] : unknown;

// Of the operations of the paths LIKE: what those of D have.
type Accepts<D, Like> = {
    [P in keyof Like]: {
        [M in Methods<Like[P]>]: Accepted<Find<Find<D, P>, M>>;
    };
};
type Answers<D, Like> = {
    [P in keyof Like]: {
        [M in Methods<Like[P]>]: Answered<Find<Find<D, P>, M>>;
    };
};
type Sends<D, Like> = {
    [P in keyof Like]: Sent<Find<Find<D, P>, "post">>;
};

declare const sent: Accepts<OldPaths, OldPaths>;
export const accepted: Accepts<NewPaths, OldPaths> = sent;

// The paths and webhooks of which a method, a parameter or a member of a body is
// gone: what may be left out is accepted by a type without it, too.
type Gone<D, Like> = {
    [P in keyof Like]: P extends keyof D
        ? Exclude<Methods<Like[P]>, Methods<D[P]>> extends never
            ? Lost<D[P], Like[P]> extends never ? never : P : P
        : P;
}[keyof Like];
type Lost<D, Like> = {
    [M in Methods<Like>]: Exclude<Named<Like[M]>, Named<Find<D, M>>>;
}[Methods<Like>];
declare const kept: Gone<NewPaths, OldPaths> | Gone<NewHooks, OldHooks>;
export const gone: never = kept;

declare const answers: Old<Answers<NewPaths, OldPaths>>;
export const expected: Answers<OldPaths, OldPaths> = answers;

declare const sends: Sends<NewHooks, OldHooks>;
export const received: Sends<OldHooks, OldHooks> = sends;
